import type { ApiError } from '../../api_error.ts';
import { acceptedDetail } from '../../route_context.ts';

/** Examples of a body by name. In the document, the spaces of a name are underscores. */
export type Examples = Readonly<Record<string, unknown>>;

/** The examples of an operation. An operation of the document without them fails `test/http/openapi.unit.ts`. */
export interface OperationExamples {
  readonly body?: Examples;
  /** By status code. */
  readonly responses?: Readonly<Record<number, Examples>>;
  /** Errors of this operation only, besides those that `errors.ts` knows for operations of its kind. */
  readonly errors?: readonly ApiError[];
}

/** Examples by operation: its method and its path below the project. */
export type ExampleTable = Readonly<Record<string, OperationExamples>>;

/** The ids that the examples share. */
export const ids = {
  batch_export: '0193a1c0-5b7e-4d0a-9c55-3f1f8d2b6a10',
  run: '5f0c2a44-8d5e-5c1b-9a3e-7b1d2f4c6e80',
  backfill: '8b8f1a52-1c6d-5e47-8f0b-2d9e4a6c8b12',
  webhook: 'c7d1e5f2-3a4b-4c6d-8e9f-0a1b2c3d4e5f',
  delivery: 'e2b4c6d8-1f3a-4b5c-9d7e-8f0a1b2c3d4e',
  message: 'a9c8b7d6-e5f4-5a3b-8c2d-1e0f9a8b7c6d',
  user: '3d2c1b0a-9f8e-4d7c-8b6a-5f4e3d2c1b0a',
  query: '7e6d5c4b-3a29-4817-9605-f4e3d2c1b0a9',
} as const;

/** One page with these items. */
export const pageWith = (...results: readonly unknown[]): Examples => ({
  page: { count: results.length, next: null, previous: null, results },
});

/** The response to a command that is still pending. */
export const accepted: Examples = { still_pending: acceptedDetail };
