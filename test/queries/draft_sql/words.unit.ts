import { expect, it } from '@jest/globals';
import { isGrammarWord } from '../../../src/queries/draft_sql/naming/grammar_words.ts';
import { keysOf, wordsOf } from '../../../src/queries/draft_sql/naming/words.ts';
import { orderedRules } from '../../../src/queries/draft_sql/understand.ts';

it('every word in a rule is a grammar word and not a name of a project', () => {
  const words = orderedRules('2026-11-21').flatMap(({ pattern: says }) =>
    says.source
      .replaceAll(/\(\?<\w+>|<[^>]*>|\\[a-z]\+?|\(\?[:<!=]*|\[\^ \]/g, ' ')
      .split(/[^a-z0-9]+/)
      .filter((word) => /[a-z]/.test(word)),
  );
  // A single `s` is an optional ending.
  const unknown = [...new Set(words)].filter(
    (word) => word !== 's' && !isGrammarWord(word) && !isGrammarWord(`${word}s`),
  );
  expect(unknown).toEqual([]);
});

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
