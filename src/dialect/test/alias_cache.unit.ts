import { expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { project } from './project.ts';

const sqlOf = (query: string): string => compileQuery(query, project).sql;

it('an alias compiles like its expression wherever it is read', () => {
  const named = `select toFloat(properties.a) + 1 as x, if(x > 2, x, -x) as y, y * x as z from events where z > 3`;
  const written = `select toFloat(properties.a) + 1 as x,
      if(toFloat(properties.a) + 1 > 2, toFloat(properties.a) + 1, -(toFloat(properties.a) + 1)) as y,
      if(toFloat(properties.a) + 1 > 2, toFloat(properties.a) + 1, -(toFloat(properties.a) + 1)) * (toFloat(properties.a) + 1) as z
    from events
    where if(toFloat(properties.a) + 1 > 2, toFloat(properties.a) + 1, -(toFloat(properties.a) + 1)) * (toFloat(properties.a) + 1) > 3`;
  expect(sqlOf(named)).toBe(sqlOf(written));
});

it('an alias refers to the column inside its own expression', () => {
  // The inner `event` is the column; `length(event)` reads the alias.
  expect(sqlOf('select upper(event) as event, length(event) as n from events')).toBe(
    sqlOf('select upper(events.event) as event, length(upper(events.event)) as n from events'),
  );
  // The aliases read each other; inside the other one each is the column.
  expect(
    sqlOf(
      'select lower(distinct_id) as event, upper(event) as distinct_id, event as a, distinct_id as b from events',
    ),
  ).toBe(
    sqlOf(
      `select lower(upper(events.event)) as event, upper(lower(events.distinct_id)) as distinct_id,
        lower(upper(events.event)) as a, upper(lower(events.distinct_id)) as b from events`,
    ),
  );
});

it('an alias reads rows inside an aggregate and is a key outside', () => {
  expect(sqlOf('select lower(event) as name, count() as n, max(name), name from events group by name')).toBe(
    sqlOf(
      'select lower(event) as name, count() as n, max(lower(event)), lower(event) from events group by lower(event)',
    ),
  );
});

it('an alias of WITH means the same whatever was compiled before it', () => {
  const columns = ['upper(e) as event', 'e as c'];
  for (const order of [columns, columns.toReversed()])
    expect(() => sqlOf(`with lower(event) as e select ${order.join(', ')} from events`)).toThrow(
      'Unable to resolve field: e',
    );
});

it('aliases that read each other many times are compiled once each', () => {
  const steps = Array.from({ length: 60 }, (_, index) =>
    index === 0 ? 'toFloat(properties.a) as a0' : `if(a${index - 1} > ${index}, 1, 0) as a${index}`,
  );
  expect(sqlOf(`select ${steps.join(', ')} from events`)).toContain('as "c60"');
});
