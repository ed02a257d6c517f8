/** A setting that is missing, unknown or invalid. The message names it and says what to write. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}
