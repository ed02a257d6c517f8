import { expect, it } from '@jest/globals';
import { createNameCache, findNameNotice } from '../../src/queries/name_notice.ts';
import type { QueryContext } from '../../src/queries/query_kind.ts';
import type { Warehouse } from '../../src/queries/warehouse.ts';
import { environment, runTask } from './threads/fake_environment.ts';

const { project, now, row_limit, byte_limit } = runTask('select 1');

/** A warehouse whose events have one name, and the statements that it was asked for. */
function warehouseOf(events: ReadonlySet<string>) {
  const statements: string[] = [];
  const readRows: Warehouse['readRows'] = ({ text, values }, { receive }) => {
    statements.push(text);
    if (text.includes('group by'))
      receive(
        [...events].map((name) => [name, '7']),
        1,
      );
    else if (values.some((value) => events.has(String(value)))) receive([['1']], 1);
    return Promise.resolve([{ name: 'column', type_id: 20 }]);
  };
  const { warehouse } = environment(new AbortController().signal, readRows);
  const withTimes: Warehouse = {
    ...warehouse,
    schema: async () => {
      const schema = await warehouse.schema();
      const columns = new Map([
        ...schema.events.columns,
        ['inserted_at', 'timestamp with time zone'],
        ['properties', 'jsonb'],
      ]);
      return {
        ...schema,
        events: { ...schema.events, columns },
        persons: {
          ...schema.persons,
          columns: new Map([...schema.persons.columns, ['properties', 'jsonb']]),
        },
      };
    },
  };
  const context: QueryContext = {
    warehouse: withTimes,
    project,
    now,
    row_limit,
    byte_limit,
    variables: {},
    progress: () => undefined,
  };
  return { context, statements };
}

const events = (event: string) => ({ kind: 'EventsQuery', event });

it('asks for a name that exists once in an hour, with one statement that ends at the first row', async () => {
  let time = 0;
  const cache = createNameCache(() => time);
  const { context, statements } = warehouseOf(new Set(['bought']));
  for (time = 0; time < 3_600_000; time += 60_000)
    expect(await findNameNotice(events('bought'), context, cache)).toBeNull();
  expect(statements).toHaveLength(1);
  expect(statements[0]).toMatch(/limit (1000000|\$\d+).* limit/s);
  time = 3_600_001;
  await findNameNotice(events('bought'), context, cache);
  expect(statements).toHaveLength(2);
});

it('asks for a name that does not exist once in a minute, so that the next event is seen soon', async () => {
  let time = 0;
  const cache = createNameCache(() => time);
  const known = new Set(['bought']);
  const { context, statements } = warehouseOf(known);
  const notice = 'No event bougt in 90 days. Did you mean bought?';
  expect(await findNameNotice(events('bougt'), context, cache)).toBe(notice);
  const asked = statements.length;
  time = 59_000;
  expect(await findNameNotice(events('bougt'), context, cache)).toBe(notice);
  expect(statements).toHaveLength(asked);
  known.add('bougt');
  time = 61_000;
  expect(await findNameNotice(events('bougt'), context, cache)).toBeNull();
});

it('searches no more names of a query after three that no row has', async () => {
  const { context, statements } = warehouseOf(new Set(['bought']));
  const text = "select 1 from events where event in ('a', 'b', 'c', 'd', 'e')";
  const notice = 'No event a in 90 days. No event b in 90 days. No event c in 90 days.';
  expect(await findNameNotice({ kind: 'DialectQuery', query: text }, context, createNameCache())).toBe(
    notice,
  );
  // Two for each, and those of the names that are known.
  expect(statements.filter((one) => !one.includes('group by'))).toHaveLength(6);
});

it('searches at most ten names of a query', async () => {
  const names = Array.from({ length: 50 }, (_, index) => `name ${index}`);
  const { context, statements } = warehouseOf(new Set(names));
  const text = `select 1 from events where event in (${names.map((name) => `'${name}'`).join(', ')})`;
  await findNameNotice({ kind: 'DialectQuery', query: text }, context, createNameCache());
  expect(statements).toHaveLength(10);
});
