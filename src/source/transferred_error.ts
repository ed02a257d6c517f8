import pg from 'pg';
import { SourceBusy, SourceIsStandby } from './source_connection.ts';
import { MissingSortKey } from './binary_tuple.ts';
import { ProtocolError } from './copy_data.ts';

/** An error of a read as plain data, for another thread: a clone of an error loses its class, name and fields. */
export interface TransferredReadError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  /** Its other fields: what PostgreSQL reported, or the code of a failed system call. */
  readonly fields: Readonly<Record<string, string | number>>;
  /** Whether PostgreSQL reported it. */
  readonly isOfDatabase: boolean;
}

/** The classes that callers distinguish. */
const classes: Readonly<Record<string, { readonly prototype: Error }>> = {
  MissingSortKey,
  ProtocolError,
  SourceBusy,
  SourceIsStandby,
};

/** Describes an error for another thread. */
export function transferReadError(thrown: unknown): TransferredReadError {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const { name, message, stack } = error;
  const fields = Object.entries(error).filter(
    (entry): entry is [string, string | number] =>
      typeof entry[1] === 'string' || typeof entry[1] === 'number',
  );
  return {
    name,
    message,
    stack,
    fields: Object.fromEntries(fields),
    isOfDatabase: error instanceof pg.DatabaseError,
  };
}

/** The error that `transferReadError` received in the other thread, with its class, by which it is classified. */
export function restoreReadError({
  name,
  message,
  stack,
  fields,
  isOfDatabase,
}: TransferredReadError): Error {
  const error = isOfDatabase ? new pg.DatabaseError(message, 0, 'error') : new Error(message);
  const known = classes[name];
  if (known) Object.setPrototypeOf(error, known.prototype);
  return Object.assign(error, fields, { name, ...(stack !== undefined && { stack }) });
}
