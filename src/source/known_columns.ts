import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import { createKeptValues } from '../concurrency/kept_values.ts';
import type { Model } from '../domain/batch_export.ts';
import { RelationNotFound } from './relations.ts';

/** SQLSTATE classes of a statement that does not fit its relations: names and types, values, features, the catalog. */
const classesOfColumns: ReadonlySet<string> = new Set(['42', '22', '0A', 'XX']);

const mayBeOfColumns = (error: unknown): boolean =>
  error instanceof RelationNotFound ||
  (error instanceof pg.DatabaseError && classesOfColumns.has(error.code?.slice(0, 2) ?? ''));

/** The columns of the relations of models, which most statements need and which rarely change. */
interface KnownColumns<Columns> {
  /** Those of a model, read at most a minute ago. */
  of(model: Model, signal: AbortSignal | undefined): Promise<Columns>;
  /** Those that it has now. */
  readAgain(model: Model, signal: AbortSignal | undefined): Promise<Columns>;
  /**
   * Reads with the columns of a model. A statement that fails because of columns that have changed since they were read is
   * tried once more, with the new ones.
   */
  reading<Result>(
    model: Model,
    signal: AbortSignal | undefined,
    read: () => Promise<Result>,
  ): Promise<Result>;
  /** Whether an error is that of a statement of former columns. Then the new ones are known. */
  haveChanged(used: UsedColumns<Columns>, error: unknown, signal: AbortSignal | undefined): Promise<boolean>;
  /** The columns that statements of a model are made of now. */
  used(model: Model): UsedColumns<Columns>;
}

/** The columns that statements are made of; undefined if they are still to be read. */
interface UsedColumns<Columns> {
  readonly model: Model;
  readonly columns: Columns | undefined;
}

/**
 * Keeps columns for a minute, and drops them when a statement of them fails.
 * @param read reads those of a model
 * @param now a clock in milliseconds
 */
export function createKnownColumns<Columns>(
  read: (model: Model, signal: AbortSignal | undefined) => Promise<Columns>,
  now?: () => number,
): KnownColumns<Columns> {
  const known = createKeptValues<Columns>(now);
  const of: KnownColumns<Columns>['of'] = (model, signal) => known.read(model, () => read(model, signal));
  const readAgain: KnownColumns<Columns>['readAgain'] = (model, signal) => {
    known.drop(model);
    return of(model, signal);
  };
  const used: KnownColumns<Columns>['used'] = (model) => ({ model, columns: known.get(model) });
  const haveChanged: KnownColumns<Columns>['haveChanged'] = async ({ model, columns }, error, signal) => {
    if (columns === undefined || !mayBeOfColumns(error)) return false;
    return !isDeepStrictEqual(await readAgain(model, signal), columns);
  };
  return {
    of,
    readAgain,
    used,
    haveChanged,
    reading: async (model, signal, work) => {
      const before = used(model);
      try {
        return await work();
      } catch (error) {
        if (!(await haveChanged(before, error, signal))) throw error;
        return work();
      }
    },
  };
}
