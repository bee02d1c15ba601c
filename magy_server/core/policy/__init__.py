"""A policy is more than permission rules: guardrails, examples of rules, and what strangers' texts
change about questions. All pure."""
