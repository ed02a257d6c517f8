import { rule, type Found, type Rule } from './rule.ts';

const then = '(?:to|into|->|→|then|and then|and|and then also|and also)';
const did = '(?:(?:did|do|have|had|made|make|triggered|performed) )?(?:an? |the )?';

const stepsOf = (found: Found): readonly string[] => [
  found.event('first'),
  found.event('second'),
  ...(found.word('third') === '' ? [] : [found.event('third')]),
];

const enough = '(?<least>at least)|(?<less>less than|fewer than)|more than|over';

/** Events one after another, and events that did not follow, or that somebody did so many times. */
export const conversionRules: readonly Rule[] = [
  rule(
    `(?:{people} )?(?:(?:who|that|with|have|has|having|had|did|do|made) )*(?:${enough}) {number} {event}`,
    (found) => ({
      events: [found.event()],
      people: true,
      times: {
        operator: found.word('least') !== '' ? 'at_least' : found.word('less') !== '' ? 'less' : 'more',
        count: found.number(),
      },
    }),
  ),
  rule(
    '(?:a |the )?(?:conversion )?funnel(?: (?:of|with|from|for))? {first:event}(?: then| to)? {second:event}(?:(?: then| to)? {third:event})?',
    (found) => ({
      steps: stepsOf(found),
    }),
  ),
  rule(
    `(?:what is )?(?:the )?(?:conversions?|funnel|conversion rate|conversion funnel)(?: of)?(?: {people})?(?: (?:from|between|of|with|for))? ${did}{first:event} ${then} ${did}{second:event}(?: ${then} ${did}{third:event})?`,
    (found) => ({ steps: stepsOf(found) }),
  ),
  rule(
    `(?:how many|what (?:percentage|percent|share|rate) of|which (?:percentage|percent|share) of|percentage of|share of)(?: the)? {people}(?: who| that)? ${did}{first:event} (?:and then|then|and later|and also|also|go on to|went on to|convert to|converted to) ${did}{second:event}`,
    (found) => ({ steps: stepsOf(found) }),
  ),
  rule(
    `(?:how many|what (?:percentage|percent|share) of|percentage of|share of)(?: {people})?(?: who| that| from)? ${did}{first:event} (?:convert|converted|converts)(?: {people})? (?:to|into) ${did}{second:event}`,
    (found) => ({ steps: stepsOf(found) }),
  ),
  rule(
    `(?:{people} )?(?:(?:who|that|with) )?${did}{event} (?:but|and|without|,)?(?: ?(?:have|has|did|do|were|who))* ?(?:never|not|no|without)(?: yet)?(?: a| an| any)? ${did}{other:event}`,
    (found) => ({ events: [found.event()], without: found.event('other'), people: true }),
  ),
  rule(`(?:{people} )?(?:with|who did) {event} without(?: an?| any)? {other:event}`, (found) => ({
    events: [found.event()],
    without: found.event('other'),
    people: true,
  })),
];
