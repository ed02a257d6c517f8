import { matchLengthOf } from './match_order.ts';
import { parsePattern } from './parse.ts';
import { printPattern } from './postgres_syntax.ts';
import { withoutGroups } from './syntax_tree.ts';

/** What is read of a match: whether there is one, its text, or what its groups captured. */
export type PatternUse = 'match' | 'text' | 'groups';

/**
 * Translates a regular expression from RE2 syntax to PostgreSQL's. It then finds the matches that RE2 finds.
 * @throws PatternError if it is invalid or cannot be translated
 */
export function translatePattern(pattern: string, use: PatternUse): string {
  const tree = parsePattern(pattern);
  if (use === 'match') return printPattern(tree, false, 'longest');
  const read = use === 'groups' ? tree : withoutGroups(tree);
  return printPattern(read, use === 'groups', matchLengthOf(read));
}
