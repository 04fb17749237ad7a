/**
 * Everything the shells need from the outside world, as one interface: time, timers, random numbers and sockets.
 * `nodeRuntime` is the real one; the simulation has a virtual one, so the same shells run in both.
 */
import type { AcceptHandler, DialOptions, Listener, ListenOptions, Socket, SocketHandler } from './socket.ts'

export interface Timer {
  /** Stops the timer; harmless after it has fired. */
  cancel(): void
}

export interface Runtime {
  /** Monotonic time in milliseconds, with a fraction. For durations and deadlines. */
  now(): number
  /** Wall-clock time in milliseconds since 1970. Only for what people or other processes read. */
  wallNow(): number
  /** Runs `fire` once, `delayMs` from now. A running timer does not keep the process alive. */
  timer(delayMs: number, fire: () => void): Timer
  /** Runs `fire` after the current event has been handled completely. */
  soon(fire: () => void): void
  /** A random integer in [0, below); `below` ≤ 2³². */
  random(below: number): number
  /** Opens a TCP connection. Failure is reported by the handler's `onClose`. */
  dial(options: DialOptions, handler: SocketHandler): Socket
  /** Listens for TCP connections. Rejects with the system's error (EADDRINUSE, EACCES, …). */
  listen(options: ListenOptions, accept: AcceptHandler): Promise<Listener>
}
