/** The log as the code sees it: pino's shape, so that a pino logger is one; tests pass a recorder. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}
