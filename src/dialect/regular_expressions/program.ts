import type { CharacterSet } from './character_set.ts';
import type { Assertion, RegularExpression, Repetition } from './syntax_tree.ts';

/** An instruction of a nondeterministic automaton. `split` prefers its first target. */
export type Instruction =
  | { readonly kind: 'set'; readonly set: CharacterSet }
  | { readonly kind: 'assertion'; readonly assertion: Assertion }
  | { readonly kind: 'split'; first: number; second: number }
  | { readonly kind: 'jump'; target: number }
  | { readonly kind: 'match' };

/** Larger programs are not examined. */
export const maxInstructions = 400;

/** The instructions of a regular expression, as RE2 compiles it; undefined if they are too many. */
export function compileProgram(tree: RegularExpression): readonly Instruction[] | undefined {
  const program: Instruction[] = [];
  const isComplete = append(tree, program);
  program.push({ kind: 'match' });
  return isComplete ? program : undefined;
}

/** Returns whether everything fits. */
function append(node: RegularExpression, program: Instruction[]): boolean {
  if (program.length > maxInstructions) return false;
  switch (node.kind) {
    case 'set':
      program.push({ kind: 'set', set: node.set });
      return true;
    case 'assertion':
      program.push({ kind: 'assertion', assertion: node.assertion });
      return true;
    case 'concatenation':
      return node.items.every((item) => append(item, program));
    case 'alternation':
      return appendBranches(node.branches, program);
    case 'repetition':
      return appendRepetition(node, program);
    case 'group':
      return append(node.body, program);
    case 'negative_lookahead':
      return false;
  }
}

function appendBranches(branches: readonly RegularExpression[], program: Instruction[]): boolean {
  const [first, ...others] = branches;
  if (first === undefined) return true;
  if (others.length === 0) return append(first, program);
  const split = appendSplit(program);
  split.first = program.length;
  if (!append(first, program)) return false;
  const jump = { kind: 'jump' as const, target: 0 };
  program.push(jump);
  split.second = program.length;
  const isComplete = appendBranches(others, program);
  jump.target = program.length;
  return isComplete;
}

function appendRepetition({ body, min, max, isGreedy }: Repetition, program: Instruction[]): boolean {
  const required = max === Infinity ? Math.max(min - 1, 0) : min;
  for (let count = 0; count < required; count += 1) if (!append(body, program)) return false;
  if (max !== Infinity) return appendOptional(body, max - min, isGreedy, program);
  // `x*` is `(x+)?`, so that an empty `x` ends the repetition.
  const skip = min === 0 ? appendSplit(program) : undefined;
  if (skip !== undefined) preferTo(skip, isGreedy, program.length);
  const start = program.length;
  if (!append(body, program)) return false;
  const again = appendSplit(program);
  preferTo(again, isGreedy, start);
  for (const split of skip === undefined ? [again] : [skip, again])
    preferTo(split, !isGreedy, program.length);
  return true;
}

/** Nested options: each requires the one before. */
function appendOptional(
  body: RegularExpression,
  count: number,
  isGreedy: boolean,
  program: Instruction[],
): boolean {
  const splits: Split[] = [];
  for (let index = 0; index < count; index += 1) {
    const split = appendSplit(program);
    splits.push(split);
    preferTo(split, isGreedy, program.length);
    if (!append(body, program)) return false;
  }
  for (const split of splits) preferTo(split, !isGreedy, program.length);
  return true;
}

type Split = Extract<Instruction, { readonly kind: 'split' }>;

function appendSplit(program: Instruction[]): Split {
  const split: Split = { kind: 'split', first: 0, second: 0 };
  program.push(split);
  return split;
}

function preferTo(split: Split, isFirst: boolean, target: number): void {
  if (isFirst) split.first = target;
  else split.second = target;
}
