import pg from 'pg';
import type { Connection, Pool } from '../journal/database.ts';
import { rejectField } from './config_fields.ts';
import { destinationTypeOf } from './registry.ts';
import type { PublicConfig } from './sealed_config.ts';

/** Not valid, and not made ready within the time that a statement may take. */
const unusable = ['2201B', '57014'];

/**
 * Refuses a config whose filters hold a regular expression that PostgreSQL cannot use. It is asked itself, since
 * nothing else knows all of its rules; the control database answers for the source.
 * @throws CommandRejected that names the member.
 */
export async function refuseInvalidPatterns(
  database: Pool | Connection,
  { destination_type, config }: PublicConfig,
): Promise<void> {
  const { filters } = destinationTypeOf(destination_type).selectionOf(config);
  const patterns = filters
    .filter(({ operator }) => operator === 'regex' || operator === 'not_regex')
    .flatMap(({ value }) => value);
  if (patterns.length === 0) return;
  try {
    await database.query(`select count(*) from unnest($1::text[]) as pattern where '' ~ pattern`, [patterns]);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && unusable.includes(error.code ?? ''))) throw error;
    throw rejectField(
      'filters',
      `PostgreSQL cannot use a regular expression of 'filters' (${error.message}).`,
    );
  }
}
