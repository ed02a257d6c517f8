import { describe, expect, it } from '@jest/globals';
import { mentionedNames } from '../../src/queries/mentioned_names.ts';

const namesIn = (query: object): string[] => mentionedNames(query).map(({ kind, name }) => `${kind} ${name}`);
const inText = (text: string): string[] => namesIn({ kind: 'DialectQuery', query: text });

describe('the names in a text of the dialect', () => {
  it.each<[string, string[]]>([
    ["select count() from events where event = 'bought'", ['event bought']],
    ["select count() from events where 'bought' = event", ['event bought']],
    [
      "select count() from events e where e.event in ('a', 'b') or event not in ['c']",
      ['event a', 'event b', 'event c'],
    ],
    ["select countIf(event = 'a'), countIf(event != 'b') from events", ['event a', 'event b']],
    ["with x as (select * from events where event = 'a') select count() from x", ['event a']],
    [
      'select properties.plan, person.properties.email from events',
      ['event property plan', 'person property email'],
    ],
    ["select e.properties['a b'] from events e", []],
    [
      'select p.properties.email, e.properties.plan from events e join persons p on p.id = e.person_id',
      ['person property email', 'event property plan'],
    ],
    ['select properties.email from persons', ['person property email']],
    // What the query itself names, what is compared with no literal, and other tables.
    ["select if(event = 'a', 'x', 'y') as event from events where event = 'x'", []],
    ["select count() from events where event like 'bou%' or event = lower('A')", []],
    ["select count() from stripe.charges where event = 'paid' and properties.plan = 'a'", []],
    [
      "select count() from events e join stripe.charges c on 1 = 1 where event = 'paid' and e.event = 'a'",
      ['event a'],
    ],
    ['select properties.$virt_revenue from events', []],
    ['select from where', []],
  ])('%s', (text, names) => {
    expect(inText(text)).toEqual(names);
  });
});

describe('the names in an insight', () => {
  it('are those of its series, filters, breakdowns and maths', () => {
    expect(
      namesIn({
        kind: 'InsightVizNode',
        source: {
          kind: 'TrendsQuery',
          series: [
            { kind: 'EventsNode', event: 'bought', math: 'sum', math_property: 'price' },
            {
              kind: 'EventsNode',
              event: null,
              properties: [{ key: 'plan', operator: 'exact', value: ['pro'] }],
            },
            { kind: 'ActionsNode', id: 3 },
          ],
          properties: {
            type: 'AND',
            values: [
              { type: 'OR', values: [{ type: 'person', key: 'email', value: 'a', operator: 'exact' }] },
            ],
          },
          breakdownFilter: { breakdown: '$browser', breakdown_type: 'event' },
        },
      }),
    ).toEqual([
      'event bought',
      'event property price',
      'event property plan',
      'person property email',
      'event property $browser',
    ]);
  });

  it('are those of the columns and conditions of a list of events', () => {
    expect(
      namesIn({
        kind: 'EventsQuery',
        event: 'a',
        select: [
          '*',
          'person',
          'properties.plan',
          'person_display_name -- Person',
          'properties.',
          'count() as n',
        ],
        where: ["event != 'b'", "events.properties.price > 3 and person.properties.email = ''"],
      }),
    ).toEqual(['event a', 'event property plan', 'event b', 'event property price', 'person property email']);
    // A field of a subquery may be of either table.
    expect(
      namesIn({
        kind: 'EventsQuery',
        select: ['event'],
        where: ["person_id in (select id from persons where properties.email = '')"],
      }),
    ).toEqual([]);
  });

  it('are none of sessions, groups, cohorts, expressions and values', () => {
    const filters = ['session', 'group', 'cohort', 'hogql', 'element'].map((type) => ({
      type,
      key: 'x',
      value: 'y',
    }));
    expect(
      namesIn({
        kind: 'FunnelsQuery',
        series: [{ kind: 'EventsNode', event: 'a', properties: filters }],
        breakdownFilter: {
          breakdowns: [
            { property: 'plan', type: 'person' },
            { property: 'x', type: 'group' },
          ],
        },
      }),
    ).toEqual(['event a', 'person property plan']);
    expect(
      namesIn({ kind: 'TrendsQuery', series: [{ kind: 'EventsNode', math_property: '$session_duration' }] }),
    ).toEqual([]);
  });
});
