/** Workflows described in Java: {@link dev.calve.dsl.Workflow} gives the definition that a server takes. */
package dev.calve.dsl;
