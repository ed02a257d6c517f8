import { parameter } from './model_query.ts';
import type { Relations } from './relations.ts';
import type { RowRange, StrayRows } from './source.ts';
import type { ReadTransaction } from './source_connection.ts';

/** How many rows are counted. An index finds them, and a table may have no others. */
const maxStrayRows = 10_000;

const limit = `limit ${maxStrayRows + 1}`;

/** SQL: counts the rows of one relation. `exportd.team_id` is the project. */
const strayRowsSql = (relation: string, column: string): string => {
  const rows = (condition: string) =>
    `select from ${relation} r where r.team_id = ${parameter('team_id', 'int')} and ${condition} ${limit}`;
  return `select (select count(*) from (${rows(`r.${column} = 'infinity'`)}) as late)::int
      + (select count(*) from (${rows(`r.${column} = '-infinity'`)}) as early)::int as infinite,
    (select count(*) from (${rows(`r.${column} > now() + interval '1 day' and r.${column} < 'infinity'`)}) as ahead)::int as ahead`;
};

/** Counts rows of a project that no interval contains; the transaction has its number. */
export async function findStrayRows(
  { connection, set }: Pick<ReadTransaction, 'connection' | 'set'>,
  relations: Relations,
  { model, team_id }: Pick<RowRange, 'model' | 'team_id'>,
): Promise<readonly StrayRows[]> {
  await set({ 'exportd.team_id': String(team_id) });
  const named =
    model === 'events'
      ? [{ relation: relations.events, column: 'inserted_at' }]
      : [relations.persons, relations.person_distinct_ids].map((relation) => ({
          relation,
          column: 'updated_at',
        }));
  const found: StrayRows[] = [];
  for (const { relation, column } of named) {
    const { rows } = await connection.query<Pick<StrayRows, 'infinite' | 'ahead'>>(
      strayRowsSql(relation, column),
    );
    for (const counts of rows)
      if (counts.infinite + counts.ahead > 0) found.push({ relation, column, ...counts });
  }
  return found;
}

const counted = (rows: number): string =>
  rows > maxStrayRows
    ? `more than ${maxStrayRows.toLocaleString('en')} rows`
    : rows === 1
      ? '1 row'
      : `${rows} rows`;

/** What follows, for each kind. `areLost`: they are never exported. */
export const describeStrayRows = ({
  relation,
  column,
  infinite,
  ahead,
}: StrayRows): readonly { readonly areLost: boolean; readonly message: string }[] => [
  ...(infinite > 0
    ? [
        {
          areLost: true,
          message: `${counted(infinite)} of ${relation} with an infinite ${column}: no interval has them, and they are never exported. Give them a time, or read them through a view that does.`,
        },
      ]
    : []),
  ...(ahead > 0
    ? [
        {
          areLost: false,
          message: `${counted(ahead)} of ${relation} with ${column} more than a day ahead of the clock: they are exported only when the clock has reached it. Correct the time, which PostgreSQL should set when it inserts a row.`,
        },
      ]
    : []),
];
