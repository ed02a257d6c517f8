/** Invalid input for a user, project or API key; the message names the value at fault. */
export class InvalidAccount extends Error {
  override readonly name = 'InvalidAccount';
}
