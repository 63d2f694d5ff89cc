/** A client of a calve server: pushes workflows, starts them, and waits for instances. */
package dev.calve.client;
