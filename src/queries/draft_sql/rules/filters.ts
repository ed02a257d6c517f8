import type { Operator } from '../draft.ts';
import { rule, type Rule } from './rule.ts';

const where =
  '(?:(?:but |and )?(?:where|with|whose|having|when|if|and|that have|who have|for which|in which|filtered by|filter by|for|in|on|from|of|using) )?(?:the |an? )?(?:property )?';
const is = '(?:is|are|was|were|be|being)';
const article = '(?:the |an? )?';

/** The words between a property and a value, longer ones first. */
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

/** Conditions on properties with an operator. */
export const filterRules: readonly Rule[] = [
  rule(`${where}{property} (?:${is} )?between {low:number} and {high:number}`, (captures) => ({
    filters: [
      { property: captures.property(), operator: 'at_least', values: [captures.text('low')] },
      { property: captures.property(), operator: 'at_most', values: [captures.text('high')] },
    ],
  })),
  rule(
    `${where}{property} (?:(?:${is} )?(?:not set|missing|unknown|empty|null|unset)|(?:does|do|did) not exist)`,
    (captures) => ({ filters: [{ property: captures.property(), operator: 'unset', values: [] }] }),
  ),
  rule(`(?:with|and|have|has|having) no {property}|without(?: an?| any)? {bare:property}`, (captures) => ({
    filters: [
      {
        property: captures.property(captures.word('property') === '' ? 'bare' : 'property'),
        operator: 'unset',
        values: [],
      },
    ],
  })),
  rule(
    `${where}{property} (?:(?:${is} )?(?:set|known|not null|not empty|not missing)|exists?)`,
    (captures) => ({
      filters: [{ property: captures.property(), operator: 'set', values: [] }],
    }),
  ),
  ...operators.flatMap(([words, operator]) => {
    const value = ofNumbers.has(operator) ? '{any:number}' : words === is ? '{any}' : '{any:anything}';
    return [
      ...(ofNumbers.has(operator)
        ? []
        : [
            rule(
              `${where}{property} ${words} (?:either )?${article}${value} or ${article}{other:any}`,
              (captures) => ({
                filters: [
                  {
                    property: captures.property(),
                    operator,
                    values: [captures.text(), captures.text('other')],
                  },
                ],
              }),
            ),
          ]),
      rule(`${where}{property} ${words} ${article}${value}`, (captures) => ({
        filters: [{ property: captures.property(), operator, values: [captures.text()] }],
      })),
    ];
  }),
  rule('(?:with|where|whose|for|on|from|in|having|and) (?:the )?{property} {text}', (captures) => ({
    filters: [{ property: captures.property(), operator: 'equals', values: [captures.text('text')] }],
  })),
  rule('(?:with|where|whose|for|on|from|in|having|and) (?:the )?{property} {value}', (captures) => ({
    filters: [{ property: captures.property(), operator: 'equals', values: [captures.value().text] }],
  })),
  rule('(?:sessions )?(?:(?<more>longer|more)|shorter|less) than {number} {unit}', (captures) => ({
    table: 'sessions',
    filters: [
      {
        property: { key: '$session_duration', owners: [], isNumber: true },
        operator: captures.word('more') === '' ? 'less' : 'greater',
        values: [String(captures.number() * (secondsOf[captures.unit()] ?? 1))],
      },
    ],
  })),
  rule('(?:with|who have|that have|having) (?:an? |the )?{property}', (captures) => ({
    filters: [{ property: captures.property(), operator: 'set', values: [] }],
  })),
];

const from = '(?:(?:in|on|from|with|using|via|for|of|by|through|at|who are|that are|who use|to) )?(?:the )?';

/** Frequent values without the name of their property: `in Germany`, `Chrome users`. */
export const bareValueRules: readonly Rule[] = [
  rule(`(?:(?:but )?(?:not|except|excluding|without|other than)) ${from}{value}`, (captures) => ({
    filters: [{ property: captures.value().property, operator: 'differs', values: [captures.value().text] }],
  })),
  rule(`${from}{value} (?:and|or) ${from}{other:value}`, (captures) => {
    const [one, other] = [captures.value(), captures.value('other')];
    if (one.property.key !== other.property.key) return null;
    return { filters: [{ property: one.property, operator: 'equals', values: [one.text, other.text] }] };
  }),
  rule(`${from}{value}`, (captures) => ({
    filters: [{ property: captures.value().property, operator: 'equals', values: [captures.value().text] }],
  })),
];
