import { beforeAll, expect, it } from '@jest/globals';
import { forEachConcurrently } from '../../src/concurrency/keyed_semaphore.ts';
import { readStandings } from '../../src/projections/export_conditions.ts';
import { openJournal } from '../../src/projections/registry.ts';
import { createCommander, quickPolicies } from '../decisions/commander.ts';
import { createLaggingExport } from '../decisions/lagging_export.ts';
import { useTestDatabase } from '../setup/use_test_database.ts';

const { pool } = useTestDatabase();
const journal = openJournal(pool);
const policies = quickPolicies();
const exports = { few: 40, many: 160 };
/** More than the ratio of the exports, and much less than its square. */
const maxRatio = 5;
const ids: string[] = [];

beforeAll(async () => {
  // Autovacuum would analyze one table after the other at any time, so that PostgreSQL would know the size of some.
  await pool.query(`do $$
    declare found regclass;
    begin
      for found in select relid from pg_stat_user_tables where schemaname = 'exportd' loop
        execute format('alter table %s set (autovacuum_enabled = off)', found);
      end loop;
    end $$`);
  const numbers = Array.from({ length: exports.many }, (_, index) => index);
  await forEachConcurrently(numbers, 8, async (number) => {
    const { batchExportId, command, create } = createCommander(journal, policies);
    ids.push(batchExportId);
    if (number % 2 === 0) {
      await create();
      return;
    }
    // Three of its intervals have runs, and the others none.
    await createLaggingExport(journal, batchExportId, 9);
    await command('unpause');
  });
});

/** A part of a plan of PostgreSQL. Numbers of rows are those of one loop. */
interface PlanNode extends Readonly<Record<string, unknown>> {
  readonly Plans?: readonly PlanNode[];
}

const numberIn = (node: PlanNode, name: string): number => Number(node[name] ?? 0);

/** The rows that a plan has looked at, and the ids that it has compared with them. */
function workOf(node: PlanNode, isList: (condition: string) => boolean, listed: number): number {
  const conditions = ['Index Cond', 'Filter', 'Join Filter'].map((name) => JSON.stringify(node[name] ?? ''));
  const rows = ['Actual Rows', 'Rows Removed by Filter', 'Rows Removed by Join Filter'];
  const once = rows.reduce((sum, name) => sum + numberIn(node, name), conditions.some(isList) ? listed : 0);
  const inner = (node.Plans ?? []).map((child) => workOf(child, isList, listed));
  return inner.reduce((sum, work) => sum + work, once * numberIn(node, 'Actual Loops'));
}

/** The work of all statements that read how some exports do. */
async function readWork(count: number): Promise<number> {
  const some = ids.slice(0, count);
  let work = 0;
  const explaining = new Proxy(pool, {
    get: (target, name) =>
      name === 'query'
        ? async (text: string, values: unknown[]) => {
            const { rows } = await target.query<{ 'QUERY PLAN': readonly { readonly Plan: PlanNode }[] }>(
              `explain (analyze, timing off, format json) ${text}`,
              values,
            );
            for (const { Plan } of rows[0]?.['QUERY PLAN'] ?? [])
              work += workOf(Plan, (condition) => some.every((id) => condition.includes(id)), count);
            return target.query(text, values);
          }
        : (Reflect.get(target, name) as unknown),
  });
  expect((await readStandings(explaining, some, () => undefined)).size).toBe(count);
  return work;
}

it.each(['before', 'after'])(
  'how exports do costs as much for each of many as for each of few, %s PostgreSQL knows how many',
  async (when) => {
    if (when === 'after') await pool.query('analyze');
    const work = { few: await readWork(exports.few), many: await readWork(exports.many) };
    expect(work.few).toBeGreaterThan(exports.few);
    expect(work.many / work.few).toBeLessThan(maxRatio);
  },
);
