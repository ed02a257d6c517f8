import type { Operator } from '../draft.ts';
import { rule, type Rule } from './rule.ts';

const where =
  '(?:(?:but |and )?(?:where|with|whose|having|when|if|and|that have|who have|for which|in which|filtered by|filter by|for|in|on|from|of|using) )?(?:the |an? )?(?:property )?';
const is = '(?:is|are|was|were|be|being)';
const article = '(?:the |an? )?';

/** What is said between a property and a value, the longer before the shorter. */
const operators: readonly (readonly [words: string, operator: Operator])[] = [
  [`(?:${is} not|!=|not|differs? from|not equals?(?: to)?|${is} not equal to|other than)`, 'differs'],
  ['(?:does not|do not|not|did not) (?:contain|include|contains|containing)', 'lacks'],
  ['(?:contains?|containing|includes?|including|like)', 'contains'],
  ['(?:starts?|starting|begins?|beginning|started) with', 'starts'],
  ['(?:ends?|ending|ended) with', 'ends'],
  [`(?:(?:${is} )?(?:at least|no less than|not less than|from|>=))`, 'at_least'],
  [`(?:(?:${is} )?(?:at most|no more than|not more than|up to|<=))`, 'at_most'],
  [
    `(?:(?:${is} )?(?:more|greater|higher|larger|bigger|longer) than|(?:${is} )?(?:over|above|>)|exceeds|exceeding)`,
    'greater',
  ],
  [`(?:(?:${is} )?(?:less|smaller|lower|fewer|shorter) than|(?:${is} )?(?:under|below|<))`, 'less'],
  [`(?:${is} (?:equal to|exactly)|equals?(?: to)?|=|exactly)`, 'equals'],
  [is, 'equals'],
];
const ofNumbers: ReadonlySet<Operator> = new Set<Operator>(['at_least', 'at_most', 'greater', 'less']);

const secondsOf: Readonly<Record<string, number>> = { minute: 60, hour: 3_600, day: 86_400 };

/** Conditions on properties that are said with an operator. */
export const filterRules: readonly Rule[] = [
  rule(`${where}{property} (?:${is} )?between {low:number} and {high:number}`, (found) => ({
    filters: [
      { property: found.property(), operator: 'at_least', values: [found.text('low')] },
      { property: found.property(), operator: 'at_most', values: [found.text('high')] },
    ],
  })),
  rule(
    `${where}{property} (?:(?:${is} )?(?:not set|missing|unknown|empty|null|unset)|(?:does|do|did) not exist)`,
    (found) => ({ filters: [{ property: found.property(), operator: 'unset', values: [] }] }),
  ),
  rule(`(?:with|and|have|has|having) no {property}|without(?: an?| any)? {bare:property}`, (found) => ({
    filters: [
      {
        property: found.property(found.word('property') === '' ? 'bare' : 'property'),
        operator: 'unset',
        values: [],
      },
    ],
  })),
  rule(`${where}{property} (?:(?:${is} )?(?:set|known|not null|not empty|not missing)|exists?)`, (found) => ({
    filters: [{ property: found.property(), operator: 'set', values: [] }],
  })),
  ...operators.flatMap(([words, operator]) => {
    const value = ofNumbers.has(operator) ? '{any:number}' : words === is ? '{any}' : '{any:anything}';
    return [
      ...(ofNumbers.has(operator)
        ? []
        : [
            rule(
              `${where}{property} ${words} (?:either )?${article}${value} or ${article}{other:any}`,
              (found) => ({
                filters: [
                  { property: found.property(), operator, values: [found.text(), found.text('other')] },
                ],
              }),
            ),
          ]),
      rule(`${where}{property} ${words} ${article}${value}`, (found) => ({
        filters: [{ property: found.property(), operator, values: [found.text()] }],
      })),
    ];
  }),
  rule('(?:with|where|whose|for|on|from|in|having|and) (?:the )?{property} {text}', (found) => ({
    filters: [{ property: found.property(), operator: 'equals', values: [found.text('text')] }],
  })),
  rule('(?:with|where|whose|for|on|from|in|having|and) (?:the )?{property} {value}', (found) => ({
    filters: [{ property: found.property(), operator: 'equals', values: [found.value().text] }],
  })),
  rule('(?:sessions )?(?:(?<more>longer|more)|shorter|less) than {number} {unit}', (found) => ({
    subject: 'sessions',
    filters: [
      {
        property: { key: '$session_duration', owners: [], isNumber: true },
        operator: found.word('more') === '' ? 'less' : 'greater',
        values: [String(found.number() * (secondsOf[found.unit()] ?? 1))],
      },
    ],
  })),
  rule('(?:with|who have|that have|having) (?:an? |the )?{property}', (found) => ({
    filters: [{ property: found.property(), operator: 'set', values: [] }],
  })),
];

const from = '(?:(?:in|on|from|with|using|via|for|of|by|through|at|who are|that are|who use|to) )?(?:the )?';

/** Values that a property often has, without the property's name: `in Germany`, `Chrome users`. */
export const bareValueRules: readonly Rule[] = [
  rule(`(?:(?:but )?(?:not|except|excluding|without|other than)) ${from}{value}`, (found) => ({
    filters: [{ property: found.value().property, operator: 'differs', values: [found.value().text] }],
  })),
  rule(`${from}{value} (?:and|or) ${from}{other:value}`, (found) => {
    const [one, other] = [found.value(), found.value('other')];
    if (one.property.key !== other.property.key) return null;
    return { filters: [{ property: one.property, operator: 'equals', values: [one.text, other.text] }] };
  }),
  rule(`${from}{value}`, (found) => ({
    filters: [{ property: found.value().property, operator: 'equals', values: [found.value().text] }],
  })),
];
