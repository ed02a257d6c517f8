/** The stack cannot start. The message tells the user what to do. */
export class LaunchError extends Error {
  override readonly name = 'LaunchError';
}
