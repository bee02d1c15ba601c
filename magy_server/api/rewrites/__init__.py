"""Front doors start rewrites of a selection, and show them while they stream, through this
package."""
