import { describe, expect, it } from '@jest/globals';
import { compileQuery } from '../compile/compile_query.ts';
import { parseExpression } from '../parser/queries.ts';
import { project } from './project.ts';

const action = (id: number, name: string, condition: string) => ({
  id,
  name,
  condition: () => parseExpression(condition),
});
const withActions = {
  ...project,
  actions: [
    action(5, 'Bought', "event = 'bought' and properties.plan = 'pro'"),
    action(6, 'Broken', 'no_such_field = 1'),
  ],
};
const compiled = (query: string) => compileQuery(query, withActions);
const sqlOf = (query: string): string => compiled(query).sql;
const errorOf = (query: string, of = withActions): string => {
  try {
    compileQuery(query, of);
  } catch (error) {
    return (error as Error).message.split('\n')[0] ?? '';
  }
  return '';
};

describe('matchesAction()', () => {
  const written = (condition: string) => sqlOf(`select count() from events where ${condition}`);

  it('is the condition of the action, by its id or its name', () => {
    const condition = written("event = 'bought' and properties.plan = 'pro'");
    expect([written('matchesAction(5)'), written("matchesAction('Bought')")]).toEqual([condition, condition]);
  });

  it('means columns of events, whatever the query calls so', () => {
    const shadowed = sqlOf("select lower(event) as event from events where matchesAction('Bought')");
    const plain = sqlOf(
      "select lower(event) as event from events where events.event = 'bought' and events.properties.plan = 'pro'",
    );
    expect(shadowed).toBe(plain);
    const joined = sqlOf(
      'select count() from persons join events as e on e.person_id = persons.id where matchesAction(5)',
    );
    expect(joined).toBe(
      sqlOf(
        "select count() from persons join events as e on e.person_id = persons.id where e.event = 'bought' and e.properties.plan = 'pro'",
      ),
    );
  });

  it.each([
    ['a column', 'select matchesAction(5) from events'],
    ['an argument of an aggregate', 'select countIf(matchesAction(5)) from events'],
    ['a key of groups', 'select matchesAction(5) as it, count() from events group by it'],
    ['a key that is written twice', 'select matchesAction(5), count() from events group by matchesAction(5)'],
    ['an item of an order', 'select event from events order by matchesAction(5)'],
    ['a part of a lambda', 'select arrayMap(x -> matchesAction(5) ? x : 0, [1, 2]) from events'],
    [
      'a part of a subquery',
      'select count() from persons where id in (select person_id from events where matchesAction(5))',
    ],
    ['a condition on a sample', 'select count() from events sample 0.1 where not matchesAction(5)'],
    [
      'a window function',
      'select lag(matchesAction(5)) over (partition by distinct_id order by timestamp) from events',
    ],
  ])('can be %s', (_, query) => {
    expect(errorOf(query)).toBe('');
  });

  it.each([
    ['select 1 from events where matchesAction(7)', /^This project has no action 7\. \(line 1, column 42\)$/],
    ["select 1 from events where matchesAction('Bougt')", /no action 'Bougt'\. Perhaps you meant `Bought`\?/],
    ['select 1 from events where matchesAction()', /requires the id or the name of an action/],
    ['select 1 from events where matchesAction(event)', /requires the id or the name of an action/],
    ['select 1 from events where matchesAction(5, 6)', /requires the id or the name of an action/],
    ['select 1 from events where matchesAction(-5)', /requires the id or the name of an action/],
    ['select matchesAction(5) over () from events', /requires the id or the name of an action/],
    ['select 1 from persons where matchesAction(5)', /needs a SELECT that reads the table events once/],
    ['select matchesAction(5)', /needs a SELECT that reads the table events once/],
    [
      'with events as (select 1 as event) select 1 from events where matchesAction(5)',
      /reads the table events once/,
    ],
    [
      'select 1 from events as a join events as b on a.uuid = b.uuid where matchesAction(5)',
      /reads the table events once/,
    ],
    [
      'select 1 from events where matchesAction(6)',
      /^Action 6 \(Broken\): Unable to resolve field: no_such_field/,
    ],
    ['select 1 from events where matchesaction(5)', /Unsupported function call/],
  ])('%s is rejected', (query, message) => {
    expect(errorOf(query)).toMatch(message);
  });

  it('is not available where no action can be used', () => {
    expect(errorOf('select 1 from events where matchesAction(5)', project as typeof withActions)).toMatch(
      /matchesAction\(\) is not available here\. Write out the conditions of the action\./,
    );
  });
});

it('keeps the values of an action out of the text', () => {
  const { sql, parameters } = compiled('select 1 from events where matchesAction(5)');
  expect([sql.includes('bought'), JSON.stringify(parameters).includes('bought')]).toEqual([false, true]);
});
