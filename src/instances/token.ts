/** Loopback addresses that stand for client instances: 22 random bits in 127.64.0.0 – 127.127.255.255. */

/** How many there are. */
export const tokenCount = 2 ** 22

/** @param token 0 ≤ token < `tokenCount` */
export function tokenAddress(token: number): string {
  return `127.${64 + (token >>> 16)}.${(token >>> 8) & 0xff}.${token & 0xff}`
}

export function isToken(address: string): boolean {
  const [first, second] = address.split('.').map(Number)
  return first === 127 && second !== undefined && second >= 64 && second < 128
}

export function isLoopbackAddress(address: string): boolean {
  return address.startsWith('127.')
}
