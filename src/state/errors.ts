/** Errors of the state log: what another version or another program wrote there is refused, never guessed. */
export type StateErrorCode = 'HG_STATE_VERSION' | 'HG_STATE_FOREIGN' | 'HG_STATE_INVALID' | 'HG_STATE_TOPIC'

export class StateError extends Error {
  readonly code: StateErrorCode

  constructor(code: StateErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StateError'
    this.code = code
  }
}
