import { describe, expect, it } from '@jest/globals';
import { draftByRules } from '../../../src/queries/draft_sql/draft_by_rules.ts';

const property = (key: string, ...owners: readonly ('event' | 'person')[]) => ({ key, owners, seen: 3 });
const vocabulary = {
  events: ['$pageview', 'signup', 'purchase_completed', 'invoice_opened', 'invoice_closed'],
  properties: [
    property('constructor', 'event'),
    property('plan', 'event', 'person'),
    property('$browser', 'event'),
    property('amount', 'event'),
    property('company size', 'person'),
  ],
};
const draft = (prompt: string): string => draftByRules({ prompt, vocabulary }).replaceAll(/\s+/g, ' ');

describe('drafts the commonest questions', () => {
  it.each([
    ['events', 'SELECT count() AS total FROM events'],
    ['How many signups?', "SELECT count() AS total FROM events WHERE event = 'signup'"],
    ['count of purchases', "SELECT count() AS total FROM events WHERE event = 'purchase_completed'"],
    ['total page views', "SELECT count() AS total FROM events WHERE event = '$pageview'"],
    ['unique users', 'SELECT uniq(person_id) AS users FROM events'],
    [
      'how many users signed up today',
      "SELECT uniq(person_id) AS users FROM events WHERE event = 'signup' AND timestamp >= toStartOfDay(now())",
    ],
    [
      'events per day',
      'SELECT toStartOfDay(timestamp) AS day, count() AS total FROM events GROUP BY day ORDER BY day LIMIT 10000',
    ],
    [
      'weekly active users',
      'SELECT toStartOfWeek(timestamp) AS week, uniq(person_id) AS users FROM events GROUP BY week ORDER BY week LIMIT 10000',
    ],
    [
      'signups over time in the last 3 months',
      "SELECT toStartOfDay(timestamp) AS day, count() AS total FROM events WHERE event = 'signup' " +
        'AND timestamp >= now() - INTERVAL 3 MONTH GROUP BY day ORDER BY day LIMIT 10000',
    ],
    [
      'signups by plan and browser this month',
      "SELECT properties.plan, properties.$browser, count() AS total FROM events WHERE event = 'signup' " +
        'AND timestamp >= toStartOfMonth(now()) GROUP BY properties.plan, properties.$browser ' +
        'ORDER BY total DESC, properties.plan, properties.$browser',
    ],
    [
      'signups by company size',
      'SELECT person.properties.`company size`, count() AS total FROM events ' +
        "WHERE event = 'signup' GROUP BY person.properties.`company size` " +
        'ORDER BY total DESC, person.properties.`company size`',
    ],
    [
      'users by plan',
      'SELECT person.properties.plan, uniq(person_id) AS users FROM events ' +
        'GROUP BY person.properties.plan ORDER BY users DESC, person.properties.plan',
    ],
    [
      'the top 5 browsers of signups per week last year',
      "SELECT toStartOfWeek(timestamp) AS week, properties.$browser, count() AS total FROM events WHERE event = 'signup' " +
        'AND timestamp >= toStartOfYear(now() - INTERVAL 1 YEAR) AND timestamp < toStartOfYear(now()) ' +
        'AND properties.$browser IS NOT NULL GROUP BY week, properties.$browser ' +
        'ORDER BY week, total DESC, properties.$browser LIMIT 5 BY week LIMIT 10000',
    ],
    [
      'top 3 events yesterday',
      'SELECT event, count() AS total FROM events WHERE timestamp >= toStartOfDay(now() - INTERVAL 1 DAY) ' +
        'AND timestamp < toStartOfDay(now()) AND event IS NOT NULL GROUP BY event ORDER BY total DESC, event LIMIT 3',
    ],
    [
      '10 most active users',
      'SELECT person_id, count() AS total FROM events WHERE person_id IS NOT NULL ' +
        'GROUP BY person_id ORDER BY total DESC, person_id LIMIT 10',
    ],
    [
      'signups and purchases since 2026-10-01',
      "SELECT event, count() AS total FROM events WHERE event IN ('signup', 'purchase_completed') " +
        "AND timestamp >= toDateTime('2026-10-01') GROUP BY event ORDER BY total DESC, event",
    ],
  ])('%s', (prompt, sql) => {
    expect(draft(prompt)).toBe(sql);
  });
});

describe('rejects a prompt that it cannot draft as unclear', () => {
  it.each([
    'signups on 2026-13-45',
    'signups since 2026-02-30',
    'signups in the last 0 days',
    'average constructor of sessions',
    'median amount by plan',
    'only the last 7 days',
    'count',
    'top 2.5 browsers',
    'top 0 browsers',
    'top 99999999999999999999999 browsers',
    'top 10 users by amount',
    'pageviews per user',
    'pageviews by hour of day',
    'signups where plan is pro',
    'signups -> purchases',
    'users who signed up but never purchased',
    'conversion from signup to purchase',
    'signups today compared to yesterday',
  ])('%s', (prompt) => {
    expect(() => draft(prompt)).toThrow(expect.objectContaining({ name: 'QueryError', code: 'unclear' }));
  });
});

it('says which words are unclear, what they could mean, and what can be drafted', () => {
  const message = (prompt: string): string => {
    try {
      return draft(prompt);
    } catch (error) {
      return error instanceof Error ? error.message : '';
    }
  };
  expect(message('signups by rocket')).toMatch(
    /^Could not interpret "by", "rocket"\. A draft counts events or unique users: /,
  );
  expect(message('closed')).toBe(draft('invoice closed'));
  expect(message('number of invoices')).toContain('Did you mean "invoice_opened" or "invoice_closed"?');
  expect(message('this month')).toMatch(/^The prompt does not say what to count\. A draft counts/);
});

it('uses calendar days as given, including the last one', () => {
  expect(draft('signups between 2028-02-28 and 2028-02-29')).toBe(
    "SELECT count() AS total FROM events WHERE event = 'signup' " +
      "AND timestamp >= toDateTime('2028-02-28') AND timestamp < toDateTime('2028-03-01')",
  );
});

it('can draft the example of the message', () => {
  expect(draft('unique users of signup per week in the last 3 months')).toContain('uniq(person_id)');
});
