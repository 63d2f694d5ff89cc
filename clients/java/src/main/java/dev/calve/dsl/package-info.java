/** Workflows described in Java: {@link dev.calve.dsl.Workflow} builds the definition that is pushed to a server. */
package dev.calve.dsl;
