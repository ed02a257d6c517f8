import { rule, type Found, type Rule } from './rule.ts';

const then = '(?:to|into|->|→|then|and then|and|and then also|and also)';
const did = '(?:(?:did|do|have|had|made|make|triggered|performed) )?(?:an? |the )?';

const stepsOf = (found: Found): readonly string[] => [
  found.event('first'),
  found.event('second'),
  ...(found.word('third') === '' ? [] : [found.event('third')]),
];

/** Events one after another, and events that did not follow. */
export const conversionRules: readonly Rule[] = [
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
