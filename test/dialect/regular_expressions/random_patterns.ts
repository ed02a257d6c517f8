import type { Draw } from '../random_calls.ts';

/**
 * Generates regular expressions whose meaning depends on preferences, and texts for them. What can be empty is not
 * repeated, and repeated groups are always part of the last repetition: JavaScript, which the results are compared
 * with, treats both differently.
 */
export class RandomPatterns {
  readonly #draw: Draw;

  constructor(draw: Draw) {
    this.#draw = draw;
  }

  pattern(depth = 2): string {
    return Array.from({ length: this.#one([1, 1, 1, 2, 3]) }, () =>
      this.#draw(12) === 0 ? '' : this.#sequence(depth),
    ).join('|');
  }

  text(): string {
    return Array.from({ length: this.#draw(9) }, () =>
      this.#one(['a', 'a', 'b', 'b', 'c', 'ü', ' ', '-', '\n']),
    ).join('');
  }

  #sequence(depth: number): string {
    return Array.from({ length: 1 + this.#draw(3) }, () => this.#quantified(depth)).join('');
  }

  #quantified(depth: number): string {
    const atom = this.#atom(depth);
    if (isNotRepeated(atom)) return atom;
    return atom + this.#one(['', '', '', '*', '+', '?', '*?', '+?', '??', '{1,2}', '{2}', '{1,2}?', '{2,}?']);
  }

  #atom(depth: number): string {
    const choice = this.#draw(depth > 0 ? 12 : 7);
    if (choice < 4) return this.#one(['a', 'b', 'c']);
    if (choice < 6) return this.#one(['.', '[ab]', '[^a]', '\\w', 'ü']);
    if (choice === 6) return this.#one(['\\b', '\\B', '^', '$']);
    return `${choice < 10 ? '(' : '(?:'}${this.pattern(depth - 1)})`;
  }

  #one<Item>(choices: readonly Item[]): Item {
    const chosen = choices[this.#draw(choices.length)];
    if (chosen === undefined) throw new Error('No choices.');
    return chosen;
  }
}

/** Whether JavaScript repeats it differently: positions, and what matches the empty string. */
const isNotRepeated = (atom: string): boolean =>
  /\\b|\\B|\^(?!a\])|\$/i.test(atom) || new RegExp(`^(?:${atom})$`, 's').test('');
