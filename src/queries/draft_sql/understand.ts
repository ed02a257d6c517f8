import { emptyDraft, mergeDrafts, type Draft } from './draft.ts';
import { bindingWords } from './naming/grammar_words.ts';
import type { GrammarWord, Mention } from './naming/mentions.ts';
import { breakdownRules } from './rules/breakdowns.ts';
import { bucketRules } from './rules/buckets.ts';
import { conversionRules } from './rules/conversions.ts';
import { bareValueRules, filterRules } from './rules/filters.ts';
import { measureRules } from './rules/measures.ts';
import { periodRules } from './rules/periods.ts';
import { capturesOf, ruleText, type Rule } from './rules/rule.ts';
import { rowRules, tableRules } from './rules/tables.ts';
import { unclear } from './unclear.ts';

/** Replaces matched words, so that their neighbours do not become adjacent. */
const matched = '·';

/** All rules, more specific ones first. */
export const orderedRules = (today: string): readonly Rule[] => [
  ...conversionRules,
  ...periodRules(today),
  ...filterRules,
  ...bucketRules,
  ...measureRules,
  ...breakdownRules,
  ...rowRules,
  ...bareValueRules,
  ...tableRules,
];

/**
 * Converts a prompt to a draft. A prompt with relevant words that no rule matches is rejected.
 * @param today the current date in the project's zone, as `2026-11-21`
 * @throws QueryError `unclear`
 */
export function understand(mentions: readonly (Mention | GrammarWord)[], today: string): Draft {
  let draft = emptyDraft;
  let text = ruleText(mentions);
  for (const { pattern: pattern, apply } of orderedRules(today))
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const more = apply(capturesOf(match, mentions), draft);
      const merged = more && mergeDrafts(draft, more);
      if (merged === null) break;
      draft = merged;
      text = `${text.slice(0, match.index)}${matched}${text.slice(match.index + match[0].length)}`;
    }
  requireAllUnderstood(text, mentions);
  return draft;
}

type PropertyMention = Extract<Mention, { kind: 'property' }>;

const isProperty = (left: Mention | string): left is PropertyMention =>
  typeof left !== 'string' && left.kind === 'property';

/** A hint on what can be computed of a property. */
const hintOf = ({ said, property: { isNumber } }: PropertyMention): string =>
  isNumber
    ? `Name an aggregate, such as the total ${said} or the average ${said}, or ${said} by another property.`
    : `Try "signups by ${said}", "top 10 ${said}" or "different ${said}".`;

function requireAllUnderstood(text: string, mentions: readonly (Mention | GrammarWord)[]): void {
  const left = text.split(/[ ·]+/).flatMap((word): readonly (Mention | string)[] => {
    const [, index] = /^<\w+:(\d+)>$/.exec(word) ?? [];
    const mention = index === undefined ? undefined : mentions[Number(index)];
    if (mention !== undefined && mention.kind !== 'grammar') return [mention];
    return bindingWords.has(word) ? [word] : [];
  });
  if (left.length === 0) return;
  const words = left.map((one) => `"${typeof one === 'string' ? one : one.said}"`).join(', ');
  const candidates = left.flatMap((one) =>
    typeof one !== 'string' && one.kind === 'text' ? one.candidates.slice(0, 5) : [],
  );
  const properties = left.filter(isProperty);
  const property = properties.find((one) => one.property.isNumber) ?? properties[0];
  const hint =
    property !== undefined && (property.property.isNumber || candidates.length === 0)
      ? hintOf(property)
      : candidates.length > 0
        ? `Did you mean ${candidates.map((name) => `"${name}"`).join(' or ')}?`
        : "Use the names of the project's events and properties, put values in quotes, and say what to count or list.";
  throw unclear(`Could not interpret ${words}. ${hint}`);
}
