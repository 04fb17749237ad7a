/** Replaces methods of classes from outside, private ones too, until they are put back. */
export type Method = (this: never, ...args: never[]) => unknown

/** @returns puts the original back */
export function patch<T extends object>(target: T, method: string, make: (original: Method) => Method): () => void {
  const methods = target as unknown as Record<string, Method>
  const original = methods[method]
  if (original === undefined) throw new Error(`no method ${method} to replace: has it been renamed?`)
  methods[method] = make(original)
  return () => {
    methods[method] = original
  }
}
