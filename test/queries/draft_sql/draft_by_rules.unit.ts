import { describe, expect, it } from '@jest/globals';
import { draftByRules } from '../../../src/queries/draft_sql/draft_by_rules.ts';

const vocabulary = {
  events: ['signup'],
  properties: [{ key: 'constructor', owners: ['event'] as const, seen: 3, isNumber: false }],
  values: [],
};
const draft = (prompt: string, current_query: string | null = null): string =>
  draftByRules({ prompt, current_query, vocabulary, today: '2026-11-21' });

describe('rejects a prompt without a sensible meaning as unclear', () => {
  it.each([
    ['signups on 2026-13-45', null],
    ['signups since 2026-02-30', null],
    ['average constructor of sessions', null],
    ['limit to 2.5', 'select event from events'],
    ['limit to 0', 'select event from events'],
    ['limit to 99999999999999999999999', 'select event from events'],
  ])('%s', (prompt, current_query) => {
    expect(() => draft(prompt, current_query)).toThrow(
      expect.objectContaining({ name: 'QueryError', code: 'unclear' }),
    );
  });
});

it('uses calendar days as given, including the last one', () => {
  expect(draft('signups between 2028-02-28 and 2028-02-29').replaceAll(/\s+/g, ' ')).toBe(
    "SELECT count() AS total FROM events WHERE event = 'signup' " +
      "AND timestamp >= toDateTime('2028-02-28') AND timestamp < toDateTime('2028-03-01')",
  );
});
