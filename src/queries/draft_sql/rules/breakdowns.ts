import type { Breakdown } from '../draft.ts';
import { rule, rules, type Found, type Rule } from './rule.ts';

const by =
  '(?:by|per|for each|for every|of each|in each|across|(?:grouped|broken down|split|segmented|divided) (?:by|into|per)|breakdown (?:by|of|per)) (?:the |their |different )?';
const most =
  '(?:most (?:common|frequent|popular|used|active|important)|commonest|top|biggest|largest|highest)';
const least = '(?:least (?:common|frequent|popular|used|active)|rarest|bottom|fewest)';

const property = (found: Found, place?: string): Breakdown => ({
  kind: 'property',
  property: found.property(place),
});

/** What answers are put together by, beside time, and how many of them are wanted. */
export const breakdownRules: readonly Rule[] = [
  rule(
    `(?:the )?(?:top|first|${most}) {number}(?: ${most})? (?:values of |kinds of )?(?:the )?{property}(?: values)?`,
    (found) => ({
      breakdowns: [property(found)],
      limit: found.number(),
      ranked: 'most',
    }),
  ),
  rule(
    `(?:the )?(?:${least}) {number}(?: ${least})? (?:values of )?(?:the )?{property}|(?:the )?{number2:number} ${least} {property2:property}`,
    (found) => ({
      breakdowns: [property(found, found.word('property') === '' ? 'property2' : 'property')],
      limit: found.number(found.word('number') === '' ? 'number2' : 'number'),
      ranked: 'least',
    }),
  ),
  rule(`(?:the )?{number} ${most} (?:values of )?(?:the )?{property}`, (found) => ({
    breakdowns: [property(found)],
    limit: found.number(),
    ranked: 'most',
  })),
  rule(
    `(?:which|what) {property}(?: is| are| was| were)? (?:the )?(?:${most}|(?:has|have|had|with) (?:the )?most)`,
    (found) => ({
      breakdowns: [property(found)],
      ranked: 'most',
    }),
  ),
  rule(`(?:the )?${most} (?:values of )?(?:the )?{property}`, (found) => ({
    breakdowns: [property(found)],
    ranked: 'most',
  })),
  rule(`(?:the )?${least} (?:values of )?(?:the )?{property}`, (found) => ({
    breakdowns: [property(found)],
    ranked: 'least',
  })),
  rule(
    `(?:the )?(?:top|${most}) (?:{number} )?(?:kinds of |types of )?events?(?: names?| types?)?`,
    (found) => ({
      breakdowns: [{ kind: 'event' }],
      ranked: 'most',
      limit: found.word('number') === '' ? null : found.number(),
    }),
  ),
  rule(`(?:the )?(?:{number} )?(?:${most})(?: {count:number})? {people}`, (found) => ({
    breakdowns: [{ kind: 'person' }],
    ranked: 'most',
    limit:
      found.word('number') === ''
        ? found.word('count') === ''
          ? null
          : found.number('count')
        : found.number(),
  })),
  rule(`(?:the )?(?:most|top)(?: {number})?(?: most)? {event} (?:the )?{property}`, (found) => ({
    breakdowns: [property(found)],
    events: [found.event()],
    ranked: 'most',
    limit: found.word('number') === '' ? null : found.number(),
  })),
  ...rules({
    [`(?:which|what) events?(?: names?| types?)?(?: (?:are|is|happen|happened|occur))?(?: the)?(?: ${most}| most often| most)`]:
      {
        breakdowns: [{ kind: 'event' }],
        ranked: 'most',
      },
    '(?:which |what )?{people}(?: (?:with|by|who|that))?(?: (?:did|have|had|made))?(?: the)? most(?: of)?': {
      breakdowns: [{ kind: 'person' }],
      ranked: 'most',
    },
    [`${by}events?(?: names?| types?)?`]: { breakdowns: [{ kind: 'event' }] },
    [`${by}(?:each |unique )?{people}`]: { breakdowns: [{ kind: 'person' }] },
  }),
  // A number by something is the sum of it, of events that have it, unless the number itself is what others are put together by.
  rule(
    `(?<!(?:by|per|of|for|each|every|across|into|and|or|most|top) (?:the )?)(?:the )?{summed:property} ${by}{property}`,
    (found) => {
      const summed = found.property('summed');
      return summed.isNumber
        ? {
            measures: [{ kind: 'sum', property: summed }],
            breakdowns: [property(found)],
            filters: [{ property: summed, operator: 'set', values: [] }],
          }
        : null;
    },
  ),
  rule(
    `${by}{property}(?: (?:and )?(?:by )?(?:the )?{second:property})?(?: (?:and )?(?:by )?(?:the )?{third:property})?`,
    // The top 10 users by revenue have most of it; they are not put together by its values.
    (found, { ranked }) =>
      ranked !== null && found.property().isNumber
        ? null
        : {
            breakdowns: [
              property(found),
              ...['second', 'third'].flatMap((place) =>
                found.word(place) === '' ? [] : [property(found, place)],
              ),
            ],
          },
  ),
  rule('(?:which|what|different|all(?: the)?|list(?: of)?(?: the)?) {property}', (found) => ({
    breakdowns: [property(found)],
  })),
];
