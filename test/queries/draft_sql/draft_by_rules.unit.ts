import { describe, expect, it } from '@jest/globals';
import { draftByRules } from '../../../src/queries/draft_sql/draft_by_rules.ts';

const property = (key: string, ...owners: readonly ('event' | 'person')[]) => ({ key, owners, seen: 3 });
const vocabulary = {
  events: ['$pageview', 'signup', 'purchase_completed', 'invoice_opened', 'invoice_closed', 'user_archived'],
  properties: [
    property('constructor', 'event'),
    property('plan', 'event', 'person'),
    property('$browser', 'event'),
    property('$geoip_country_name', 'event'),
    property('$geoip_country_code', 'event'),
    property('amount', 'event'),
    property('company size', 'person'),
  ],
};
const draft = (prompt: string): string => draftByRules(prompt, vocabulary).replaceAll(/\s+/g, ' ');

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
      'signups per week by plan in the last 3 months',
      "SELECT toStartOfWeek(timestamp) AS week, properties.plan, count() AS total FROM events WHERE event = 'signup' " +
        'AND timestamp >= now() - INTERVAL 3 MONTH GROUP BY week, properties.plan ' +
        'ORDER BY week, total DESC, properties.plan LIMIT 10000',
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
      'the top 5 browsers of signups by users last year',
      "SELECT properties.$browser, uniq(person_id) AS users FROM events WHERE event = 'signup' " +
        'AND timestamp >= toStartOfYear(now() - INTERVAL 1 YEAR) AND timestamp < toStartOfYear(now()) ' +
        'AND properties.$browser IS NOT NULL GROUP BY properties.$browser ' +
        'ORDER BY users DESC, properties.$browser LIMIT 5',
    ],
    [
      'Top countries, by page views.',
      "SELECT properties.$geoip_country_name, count() AS total FROM events WHERE event = '$pageview' " +
        'AND properties.$geoip_country_name IS NOT NULL GROUP BY properties.$geoip_country_name ' +
        'ORDER BY total DESC, properties.$geoip_country_name LIMIT 10',
    ],
    ['events of user archived', "SELECT count() AS total FROM events WHERE event = 'user_archived'"],
    [
      'top 3 events yesterday',
      'SELECT event, count() AS total FROM events WHERE timestamp >= toStartOfDay(now() - INTERVAL 1 DAY) ' +
        'AND timestamp < toStartOfDay(now()) AND event IS NOT NULL GROUP BY event ORDER BY total DESC, event LIMIT 3',
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
    'top 5 browsers per week',
    'signups and purchases',
    'signups yesterday and today',
    'signups since 2026-10-01',
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
    /^Could not interpret "by", "rocket"\. A draft counts events or unique users, /,
  );
  expect(message('closed')).toBe(draft('invoice closed'));
  expect(message('number of invoices')).toMatch(/^Could not interpret "invoices"\./);
  expect(message('this month')).toMatch(/^The prompt does not say what to count\. A draft counts/);
});

it('drafts from names of any length and form', () => {
  const strange = ["it's", '`); drop', 'x'.repeat(1_000_000), ' '.repeat(1_000_000), ''];
  const names = { events: strange, properties: strange.map((key) => property(key, 'event')) };
  expect(draftByRules("number of it's", names)).toContain("event = 'it\\'s'");
  expect(() => draftByRules('', names)).toThrow('The prompt does not say what to count.');
});

it('can draft the example of the message', () => {
  expect(draft('unique users of signup per week in the last 3 months')).toContain('uniq(person_id)');
});
