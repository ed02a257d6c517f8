import type { Breakdown } from '../draft.ts';
import { rule, rules, type Captures, type Rule } from './rule.ts';

const by =
  '(?:by|per|for each|for every|of each|in each|across|(?:grouped|broken down|split|segmented|divided) (?:by|into|per)|breakdown (?:by|of|per)) (?:the |their |different )?';
const most =
  '(?:most (?:common|frequent|popular|used|active|important)|commonest|top|biggest|largest|highest)';
const least = '(?:least (?:common|frequent|popular|used|active)|rarest|bottom|fewest)';

const property = (captures: Captures, group?: string): Breakdown => ({
  kind: 'property',
  property: captures.property(group),
});

/** What results are grouped by, besides time, and how many groups are requested. */
export const breakdownRules: readonly Rule[] = [
  rule(
    `(?:the )?(?:top|first|${most}) {number}(?: ${most})? (?:values of |kinds of )?(?:the )?{property}(?: values)?`,
    (captures) => ({
      breakdowns: [property(captures)],
      limit: captures.number(),
      ranked: 'most',
    }),
  ),
  rule(
    `(?:the )?(?:${least}) {number}(?: ${least})? (?:values of )?(?:the )?{property}|(?:the )?{number2:number} ${least} {property2:property}`,
    (captures) => ({
      breakdowns: [property(captures, captures.word('property') === '' ? 'property2' : 'property')],
      limit: captures.number(captures.word('number') === '' ? 'number2' : 'number'),
      ranked: 'least',
    }),
  ),
  rule(`(?:the )?{number} ${most} (?:values of )?(?:the )?{property}`, (captures) => ({
    breakdowns: [property(captures)],
    limit: captures.number(),
    ranked: 'most',
  })),
  rule(
    `(?:which|what) {property}(?: is| are| was| were)? (?:the )?(?:${most}|(?:has|have|had|with) (?:the )?most)`,
    (captures) => ({
      breakdowns: [property(captures)],
      ranked: 'most',
    }),
  ),
  rule(`(?:the )?${most} (?:values of )?(?:the )?{property}`, (captures) => ({
    breakdowns: [property(captures)],
    ranked: 'most',
  })),
  rule(`(?:the )?${least} (?:values of )?(?:the )?{property}`, (captures) => ({
    breakdowns: [property(captures)],
    ranked: 'least',
  })),
  rule(
    `(?:the )?(?:top|${most}) (?:{number} )?(?:kinds of |types of )?events?(?: names?| types?)?`,
    (captures) => ({
      breakdowns: [{ kind: 'event' }],
      ranked: 'most',
      limit: captures.word('number') === '' ? null : captures.number(),
    }),
  ),
  rule(`(?:the )?(?:{number} )?(?:${most})(?: {count:number})? {people}`, (captures) => ({
    breakdowns: [{ kind: 'person' }],
    ranked: 'most',
    limit:
      captures.word('number') === ''
        ? captures.word('count') === ''
          ? null
          : captures.number('count')
        : captures.number(),
  })),
  rule(`(?:the )?(?:most|top)(?: {number})?(?: most)? {event} (?:the )?{property}`, (captures) => ({
    breakdowns: [property(captures)],
    events: [captures.event()],
    ranked: 'most',
    limit: captures.word('number') === '' ? null : captures.number(),
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
  // A number by something is its sum over events that have it, unless the number is itself what others are grouped by.
  rule(
    `(?<!(?:by|per|of|for|each|every|across|into|and|or|most|top) (?:the )?)(?:the )?{summed:property} ${by}{property}`,
    (captures) => {
      const summed = captures.property('summed');
      return summed.isNumber
        ? {
            measures: [{ kind: 'sum', property: summed }],
            breakdowns: [property(captures)],
            filters: [{ property: summed, operator: 'set', values: [] }],
          }
        : null;
    },
  ),
  rule(
    `${by}{property}(?: (?:and )?(?:by )?(?:the )?{second:property})?(?: (?:and )?(?:by )?(?:the )?{third:property})?`,
    // The top 10 users by revenue are ranked by it, not grouped by its values.
    (captures, { ranked }) =>
      ranked !== null && captures.property().isNumber
        ? null
        : {
            breakdowns: [
              property(captures),
              ...['second', 'third'].flatMap((group) =>
                captures.word(group) === '' ? [] : [property(captures, group)],
              ),
            ],
          },
  ),
  rule('(?:which|what|different|all(?: the)?|list(?: of)?(?: the)?) {property}', (captures) => ({
    breakdowns: [property(captures)],
  })),
];
