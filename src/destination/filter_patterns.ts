import pg from 'pg';
import type { Connection, Pool } from '../journal/database.ts';
import { rejectField } from './config_fields.ts';
import { selectionOf } from './config.ts';
import type { PublicConfig } from './sealed_config.ts';

/** PostgreSQL error codes: invalid regular expression, statement timeout. */
const invalidPatternCodes = ['2201B', '57014'];

/**
 * Rejects a config with a regular expression that PostgreSQL cannot use. Only PostgreSQL knows all its rules, so the
 * control database checks it on behalf of the source.
 * @throws CommandRejected with the field
 */
export async function rejectInvalidPatterns(
  database: Pool | Connection,
  { config }: PublicConfig,
): Promise<void> {
  const { filters } = selectionOf(config);
  const patterns = filters
    .filter(({ operator }) => operator === 'regex' || operator === 'not_regex')
    .flatMap(({ value }) => value);
  if (patterns.length === 0) return;
  try {
    await database.query(`select count(*) from unnest($1::text[]) as pattern where '' ~ pattern`, [patterns]);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && invalidPatternCodes.includes(error.code ?? ''))) throw error;
    throw rejectField(
      'filters',
      `PostgreSQL cannot use a regular expression in 'filters' (${error.message}).`,
    );
  }
}
