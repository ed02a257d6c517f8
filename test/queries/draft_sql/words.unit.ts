import { expect, it } from '@jest/globals';
import { keysOf, wordsOf } from '../../../src/queries/draft_sql/prompt_names.ts';

it('splits words by quotes, signs and numbers', () => {
  expect(
    wordsOf(`Ada's "plan b" isn't >= 1,000 or $pageview, since 2026-11-21. /a/b?`).map(
      ({ text, kind }) => `${kind} ${text}`,
    ),
  ).toEqual([
    'word Ada',
    'quoted plan b',
    'word is',
    'word not',
    'sign >=',
    'number 1000',
    'word or',
    'word $pageview',
    'word since',
    'date 2026-11-21',
    'word /a/b',
  ]);
});

it.each([
  ['purchases', 'purchased'],
  ['sign ups', 'signed_up'],
  ['page views', '$pageview'],
  ['countries', 'country'],
  ['classes', 'class'],
  ['planned', 'plan'],
  ['created', 'creates'],
])('%s and %s are the same name', (one, other) => {
  expect(keysOf(one).filter((key) => keysOf(other).includes(key))).not.toEqual([]);
});
