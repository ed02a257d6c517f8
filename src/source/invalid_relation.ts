import pg from 'pg';
import type { Model } from '../domain/batch_export.ts';
import { findColumnProblems } from './check/check_columns.ts';
import { readRelationFacts } from './check/relation_facts.ts';
import type { ReadCatalog } from './check/report.ts';
import type { RelationRole } from './contract.ts';
import type { Relations } from './relations.ts';

/** A relation of the source lacks columns, or has them with types that exports cannot read. */
export class InvalidRelation extends Error {
  override readonly name = 'InvalidRelation';
}

/** Missing relations and permissions, which PostgreSQL's own message names. */
const clearStates: ReadonlySet<string | undefined> = new Set(['42P01', '42501']);

const rolesOf: Readonly<Record<Model, readonly RelationRole[]>> = {
  events: ['events', 'persons', 'person_distinct_ids'],
  persons: ['persons', 'person_distinct_ids'],
};

/**
 * Finds the columns because of which PostgreSQL rejected a statement. Its message names the types, such as `cannot cast type
 * bigint to uuid`, but neither relation nor column.
 * @returns InvalidRelation, or else the error itself
 */
export async function nameInvalidColumns(
  error: unknown,
  model: Model,
  relations: Relations,
  read: ReadCatalog,
): Promise<unknown> {
  if (!(error instanceof pg.DatabaseError) || !error.code?.startsWith('42') || clearStates.has(error.code))
    return error;
  try {
    for (const role of rolesOf[model]) {
      const facts = await readRelationFacts(read, relations[role]);
      const problems = typeof facts === 'string' ? [] : await findColumnProblems(read, role, facts);
      if (problems.length > 0)
        return new InvalidRelation(
          `The relation ${relations[role]} of the source does not have the columns that exports need. ${problems
            .map(({ message }) => message)
            .join(' ')} Run "exportd source check" for the SQL that fixes it.`,
        );
    }
    return error;
  } catch {
    // The first error is what the caller has to know.
    return error;
  }
}
