import { DestinationError } from '../destination/destination.ts';

/** Something in the log or the files of a table keeps exportd from committing to it. It stays until a person acts. */
export const tableError = (type: string, message: string): DestinationError =>
  new DestinationError(type, message, { transient: false });
