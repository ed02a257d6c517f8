import { rule, type Captures, type Rule } from './rule.ts';

const then = '(?:to|into|->|→|then|and then|and|and then also|and also)';
const did = '(?:(?:did|do|have|had|made|make|triggered|performed) )?(?:an? |the )?';

const stepsOf = (captures: Captures): readonly string[] => [
  captures.event('first'),
  captures.event('second'),
  ...(captures.word('third') === '' ? [] : [captures.event('third')]),
];

const enough = '(?<least>at least)|(?<less>less than|fewer than)|more than|over';

/** Events in sequence, events that did not follow, and how often people did an event. */
export const conversionRules: readonly Rule[] = [
  rule(
    `(?:{people} )?(?:(?:who|that|with|have|has|having|had|did|do|made) )*(?:${enough}) {number} {event}`,
    (captures) => ({
      events: [captures.event()],
      people: true,
      times: {
        operator: captures.word('least') !== '' ? 'at_least' : captures.word('less') !== '' ? 'less' : 'more',
        count: captures.number(),
      },
    }),
  ),
  rule(
    '(?:a |the )?(?:conversion )?funnel(?: (?:of|with|from|for))? {first:event}(?: then| to)? {second:event}(?:(?: then| to)? {third:event})?',
    (captures) => ({
      steps: stepsOf(captures),
    }),
  ),
  rule(
    `(?:what is )?(?:the )?(?:conversions?|funnel|conversion rate|conversion funnel)(?: of)?(?: {people})?(?: (?:from|between|of|with|for))? ${did}{first:event} ${then} ${did}{second:event}(?: ${then} ${did}{third:event})?`,
    (captures) => ({ steps: stepsOf(captures) }),
  ),
  rule(
    `(?:how many|what (?:percentage|percent|share|rate) of|which (?:percentage|percent|share) of|percentage of|share of)(?: the)? {people}(?: who| that)? ${did}{first:event} (?:and then|then|and later|and also|also|go on to|went on to|convert to|converted to) ${did}{second:event}`,
    (captures) => ({ steps: stepsOf(captures) }),
  ),
  rule(
    `(?:how many|what (?:percentage|percent|share) of|percentage of|share of)(?: {people})?(?: who| that| from)? ${did}{first:event} (?:convert|converted|converts)(?: {people})? (?:to|into) ${did}{second:event}`,
    (captures) => ({ steps: stepsOf(captures) }),
  ),
  rule(
    `(?:{people} )?(?:(?:who|that|with) )?${did}{event} (?:but|and|without|,)?(?: ?(?:have|has|did|do|were|who))* ?(?:never|not|no|without)(?: yet)?(?: a| an| any)? ${did}{other:event}`,
    (captures) => ({ events: [captures.event()], without: captures.event('other'), people: true }),
  ),
  rule(`(?:{people} )?(?:with|who did) {event} without(?: an?| any)? {other:event}`, (captures) => ({
    events: [captures.event()],
    without: captures.event('other'),
    people: true,
  })),
];
