import { z } from 'zod';
import { QueryError, type QueryPosition } from '../query_errors.ts';
import { QuerySchemaError } from '../registry.ts';

/** An error as plain data, for another thread. */
export type TransferredError =
  | {
      readonly type: 'query';
      readonly code: string;
      readonly message: string;
      readonly attr: string | null;
      readonly position: QueryPosition | null;
    }
  | { readonly type: 'schema'; readonly issues: string; readonly path: readonly string[] }
  | { readonly type: 'other'; readonly name: string; readonly message: string; readonly stack: string };

/** Errors of a request keep their class, on which its response depends; any other error keeps its name. */
export function transferError(error: unknown): TransferredError {
  if (error instanceof QueryError) {
    const { code, message, attr, position } = error;
    return { type: 'query', code, message, attr, position };
  }
  // As JSON, because an issue can hold values that cannot be cloned.
  if (error instanceof QuerySchemaError)
    return { type: 'schema', issues: JSON.stringify(error.error.issues), path: error.path };
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error));
  return { type: 'other', name, message, stack };
}

/** The error that `transferError` received in the other thread. */
export function restoreError(transferred: TransferredError): Error {
  switch (transferred.type) {
    case 'query':
      return new QueryError(transferred.code, transferred.message, transferred);
    case 'schema':
      return new QuerySchemaError(
        new z.ZodError(JSON.parse(transferred.issues) as z.core.$ZodIssue[]),
        transferred.path,
      );
    case 'other': {
      const error = new Error(transferred.message);
      error.name = transferred.name;
      error.stack = transferred.stack;
      return error;
    }
  }
}
