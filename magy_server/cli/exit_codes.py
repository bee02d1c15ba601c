"""Every command ends with one of these exit codes."""

DONE, ERROR, USAGE, UNASKED, LIMIT, UNTOLD, STRAY, CANCELLED, PIPE = 0, 1, 2, 3, 4, 5, 6, 130, 141

EXIT_CODES = (
    (DONE, "done"),
    (ERROR, "an error: the model, the log or the output failed, or the model declined the task"),
    (USAGE, "the command line or the configuration is wrong"),
    (UNASKED, "done, but something was refused because there was nobody to ask for permission"),
    (LIMIT, "stopped at a limit (requests, tokens, time, length of a reply) or in a loop"),
    (STRAY, "the model wrote a tool call as text, and Magy could not run it"),
    (CANCELLED, "cancelled with Ctrl-C"),
    (PIPE, "the program that read the output ended"),
)
EDIT_CODES = (
    (DONE, "done; with --check: the edit would succeed"),
    (ERROR, "refused, or an error; nothing was written"),
    (USAGE, "the command line is wrong"),
    (UNTOLD, "the edit was made, but the output could not be written"),
    (PIPE, "done or refused, but the program that read the output ended"),
)
