import { contains, maxCodePoint, newline, wordCharacters } from './character_set.ts';
import { compileProgram, type Instruction, maxInstructions } from './program.ts';
import { fixedLength } from './properties.ts';
import type { Assertion, RegularExpression } from './syntax_tree.ts';

/** A number of steps, shared by several examinations. */
export interface StepBudget {
  steps: number;
}

/**
 * Whether the match that RE2 finds, the first by preference, is always the longest one, which PostgreSQL finds.
 * Examines all states of both automata together; false also if the steps do not suffice.
 */
export function isFirstMatchLongest(tree: RegularExpression, budget: StepBudget): boolean {
  if (fixedLength(tree) !== null) return true;
  if (budget.steps < 0) return false;
  const program = compileProgram(tree);
  budget.steps -= program?.length ?? maxInstructions;
  return program !== undefined && new Comparison(program, budget).agrees();
}

/** What assertions read of a character next to a position; `none` at the start and the end of the text. */
type Neighbor = 'none' | 'newline' | 'word' | 'other';

/** A set of characters that the program does not distinguish. */
interface CharacterClass {
  readonly sample: number;
  readonly neighbor: Neighbor;
}

/** The threads of both automata at a position: all of them, and by preference those that may still win. */
interface State {
  readonly previous: Neighbor;
  readonly preferred: readonly number[];
  readonly all: readonly number[];
}

class Comparison {
  readonly #program: readonly Instruction[];
  readonly #classes: readonly CharacterClass[];
  readonly #budget: StepBudget;

  constructor(program: readonly Instruction[], budget: StepBudget) {
    this.#program = program;
    this.#budget = budget;
    this.#classes = classesOf(program);
  }

  agrees(): boolean {
    const neighbors: readonly Neighbor[] = ['none', 'newline', 'word', 'other'];
    const open: State[] = neighbors.map((previous) => ({ previous, preferred: [0], all: [0] }));
    const seen = new Set(open.map(keyOf));
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      for (const next of [null, ...this.#classes]) {
        const reached = this.#advance(state, next);
        if (reached === 'differs' || this.#budget.steps < 0) return false;
        const key = keyOf(reached);
        if (reached.all.length === 0 || seen.has(key)) continue;
        seen.add(key);
        open.push(reached);
      }
    }
    return true;
  }

  /** Reads one character, or the end of the text. */
  #advance(state: State, next: CharacterClass | null): State | 'differs' {
    const neighbors = [state.previous, next?.neighbor ?? 'none'] as const;
    const all = this.#close(state.all, neighbors);
    const closed = this.#close(state.preferred, neighbors);
    const match = closed.findIndex((index) => this.#program[index]?.kind === 'match');
    if (match < 0 && all.some((index) => this.#program[index]?.kind === 'match')) return 'differs';
    // Threads after a match are less preferred than it.
    const preferred = match < 0 ? closed : closed.slice(0, match);
    return {
      previous: neighbors[1],
      preferred: this.#read(preferred, next),
      all: this.#read(all, next).toSorted((left, right) => left - right),
    };
  }

  /** Follows all instructions that read no character, by preference. */
  #close(threads: readonly number[], neighbors: readonly [Neighbor, Neighbor]): readonly number[] {
    const visited = new Set<number>();
    const reached: number[] = [];
    const open = threads.toReversed();
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      this.#budget.steps -= 1;
      const instruction = this.#program[index];
      if (instruction === undefined || visited.has(index)) continue;
      visited.add(index);
      switch (instruction.kind) {
        case 'set':
        case 'match':
          reached.push(index);
          break;
        case 'jump':
          open.push(instruction.target);
          break;
        case 'split':
          open.push(instruction.second, instruction.first);
          break;
        case 'assertion':
          if (holds(instruction.assertion, neighbors)) open.push(index + 1);
          break;
      }
    }
    return reached;
  }

  #read(threads: readonly number[], next: CharacterClass | null): readonly number[] {
    if (next === null) return [];
    this.#budget.steps -= threads.length;
    return threads.flatMap((index) => {
      const instruction = this.#program[index];
      return instruction?.kind === 'set' && contains(instruction.set, next.sample) ? [index + 1] : [];
    });
  }
}

const keyOf = ({ previous, preferred, all }: State): string =>
  `${previous}:${preferred.join()}:${all.join()}`;

function holds(assertion: Assertion, [previous, next]: readonly [Neighbor, Neighbor]): boolean {
  switch (assertion) {
    case 'text_start':
      return previous === 'none';
    case 'text_end':
      return next === 'none';
    case 'line_start':
      return previous === 'none' || previous === 'newline';
    case 'line_end':
      return next === 'none' || next === 'newline';
    case 'word_boundary':
      return (previous === 'word') !== (next === 'word');
    case 'no_word_boundary':
      return (previous === 'word') === (next === 'word');
  }
}

/** One class for each combination of the sets that a character can be in. */
function classesOf(program: readonly Instruction[]): readonly CharacterClass[] {
  const sets = program.flatMap((instruction) => (instruction.kind === 'set' ? [instruction.set] : []));
  const distinct = [...new Map(sets.map((set) => [JSON.stringify(set), set])).values()];
  const starts = new Set([0]);
  for (const set of [...distinct, wordCharacters, newline])
    for (const [first, last] of set) starts.add(first).add(last + 1);
  const classes = new Map<string, CharacterClass>();
  for (const sample of starts) {
    if (sample > maxCodePoint) continue;
    const neighbor = neighborOf(sample);
    const key = `${neighbor}${distinct.map((set) => (contains(set, sample) ? 1 : 0)).join('')}`;
    classes.set(key, { sample, neighbor });
  }
  return [...classes.values()];
}

const neighborOf = (codePoint: number): Neighbor =>
  contains(newline, codePoint) ? 'newline' : contains(wordCharacters, codePoint) ? 'word' : 'other';
