/** A calve server: push, start, wait. */
package dev.calve.client;
