import { expect, it } from '@jest/globals';
import { explainedLines, explainQuery } from '../compile/compile_query.ts';
import { berlin } from './project.ts';

const explained = (query: string): string => explainedLines(explainQuery(query, berlin).tree).join('\n');

it('prints one node per line, below the node that reads it, with its type', () => {
  expect(
    explained(
      "SELECT toStartOfDay(timestamp) AS day, sumIf(length(event), event != 'a') AS s FROM events GROUP BY day HAVING s > 2 * 3",
    ),
  ).toBe(`query
  table events
  group by
    toStartOfDay: DateTime64(6, 'Europe/Berlin')
      column 1.timestamp: DateTime64(6, 'Europe/Berlin')
  having
    >: Bool
      aggregate sum If {"arguments":1,"filters":1}: Int64
        length: Int64
          column 1.event: String
        !=: Bool
          column 1.event: String
          literal String a: String
      *: Int64
        literal Int64 2: Int64
        literal Int64 3: Int64
  select
    toStartOfDay: DateTime64(6, 'Europe/Berlin')
      column 1.timestamp: DateTime64(6, 'Europe/Berlin')
    aggregate sum If {"arguments":1,"filters":1}: Int64
      length: Int64
        column 1.event: String
      !=: Bool
        column 1.event: String
        literal String a: String`);
});

it('prints a query that is read twice once', () => {
  expect(
    explained(
      'WITH n AS (SELECT number FROM numbers(2)) SELECT (SELECT max(number) FROM n) AS m FROM n UNION ALL SELECT 1',
    ),
  ).toBe(`union all
  query
    query
      table numbers
      select
        column 1.number: Int64
    select
      subquery 3: Nullable(Int64)
        query
          query, see above
          select
            aggregate max: Int64
              column 4.number: Int64
  query
    select
      literal Int64 1: Int64`);
});
