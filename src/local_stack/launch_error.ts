/** Something that keeps the stack from starting; the message is a sentence for the user that says what to do. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
}
