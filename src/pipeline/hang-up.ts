/** Taking leave of two sockets. */
import type { Runtime } from '../runtime/runtime.ts'
import type { Socket } from '../runtime/socket.ts'

/** How long a closed peer may take to read what was written and to answer our FIN before it is dropped. */
const LINGER_MS = 2000

/**
 * Closes both sides. Without `reset`, what was written is still sent, with a FIN behind it; what still comes is dropped.
 * @param cut the upstream is in the middle of a request, so the rest of what waits there makes no sense
 */
export function hangUp(
  runtime: Runtime,
  client: Socket,
  upstream: Socket | undefined,
  reset: boolean,
  cut: boolean,
): void {
  if (reset) {
    upstream?.destroy(true)
    client.destroy(true)
    return
  }
  if (upstream !== undefined && upstream.pendingBytes > 0 && !cut) upstream.end()
  else upstream?.destroy()
  client.resume()
  client.end()
  runtime.timer(LINGER_MS, () => {
    client.destroy()
    upstream?.destroy()
  })
}
