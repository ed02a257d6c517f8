import { SettingsError } from './settings_error.ts';

/** Where a process could not listen, and what its operator changes. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** The settings of the host and the port. */
  readonly settings: { readonly host: string; readonly port: string };
  /** What to know when the port is in use, to follow "Set … to another port". */
  readonly portAdvice?: string;
}

/** The settings error for a failed `listen`; undefined when no setting is at fault. */
export function listenError(
  error: unknown,
  { host, port, settings, portAdvice = '' }: ListenAddress,
): SettingsError | undefined {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'EADDRINUSE':
      return new SettingsError(
        `Port ${port} on ${host} is in use. Set ${settings.port} to another port${portAdvice}.`,
      );
    case 'EACCES':
      return new SettingsError(
        `This user may not listen on port ${port}. Set ${settings.port} to a port above 1023.`,
      );
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new SettingsError(
        `This machine has no address ${host}. Set ${settings.host} to one of its addresses.`,
      );
    default:
      return undefined;
  }
}
