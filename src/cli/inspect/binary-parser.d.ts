/** What is used of `binary-parser`; its own types cannot be found through its package's exports. */
declare module 'binary-parser' {
  export class Parser<T = object> {
    endianess(order: 'big' | 'little'): this
    int8<K extends string>(name: K): Parser<T & Record<K, number>>
    int16<K extends string>(name: K): Parser<T & Record<K, number>>
    int32<K extends string>(name: K): Parser<T & Record<K, number>>
    uint32<K extends string>(name: K): Parser<T & Record<K, number>>
    int64<K extends string>(name: K): Parser<T & Record<K, bigint>>
    /** Throws a RangeError where the bytes end too early. */
    parse(bytes: Buffer): T
  }
}
