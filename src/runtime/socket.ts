/**
 * A TCP socket as the shells see it: bytes are read into buffers that the *handler* provides, and a write says at once
 * whether the peer keeps up. Half-close is kept apart from close, because Headgate carries it over.
 */

export interface Socket {
  readonly remoteAddress: string
  readonly remotePort: number
  /** The address that was dialled or accepted on; tells loopback instances apart. IPv4-mapped IPv6 is shown as IPv4. */
  readonly localAddress: string
  readonly localPort: number
  /** Bytes written and not yet taken by the kernel. */
  readonly pendingBytes: number
  /**
   * Queues bytes. The caller must not touch them until `taken` was called: exactly once, also when the socket dies,
   * and possibly before `write` returns.
   */
  write(bytes: Uint8Array, taken?: () => void): void
  /** Between `cork` and `uncork`, writes are gathered and go out together. Not nested. */
  cork(): void
  uncork(): void
  /** Stops reading. Data already on its way in this turn may still arrive once. */
  pause(): void
  resume(): void
  /** Half-close: no more writes; the peer sees the end after everything written. */
  end(): void
  /** Closes both directions now; what was not sent is lost. `reset` sends RST instead of FIN where possible. */
  destroy(reset?: boolean): void
}

/** Receives a socket's events. One object per direction of a connection, not a closure per message. */
export interface SocketHandler {
  /** The connection is established: dialled, or accepted and still paused. */
  onConnect?(): void
  /** Where the next bytes are to be written; asked again after every `onData`. At least one byte long. */
  buffer(): Uint8Array
  /** `length` bytes were written at the start of the last `buffer()`. They are the handler's until it returns. */
  onData(length: number): void
  /** The kernel took everything after `pendingBytes` had been above zero. */
  onDrain(): void
  /** The peer ended its direction; ours may still write. */
  onEnd(): void
  /** Called once, last: the socket is gone; with the error if it died of one. */
  onClose(error: NodeJS.ErrnoException | undefined): void
}

export interface DialOptions {
  host: string
  port: number
  /** Gives up with ETIMEDOUT after this long. */
  timeoutMs: number
}

export interface ListenOptions {
  host: string
  /** 0: any free port. */
  port: number
  backlog?: number
}

/** Called for each accepted socket, which is paused until `resume`; undefined closes it at once. */
export type AcceptHandler = (socket: Socket) => SocketHandler | undefined

export interface Listener {
  readonly host: string
  readonly port: number
  /** Stops accepting; accepted sockets live on. */
  close(): Promise<void>
}
