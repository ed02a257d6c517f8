import type { Draw } from '../random_calls.ts';

const letters = ['a', 'b', 'c'];
const quantifiers: readonly string[] = [
  '',
  '',
  '',
  '*',
  '+',
  '?',
  '*?',
  '+?',
  '??',
  '{1,2}',
  '{2}',
  '{1,2}?',
  '{2,}?',
];
const greedy = quantifiers.filter((quantifier) => !quantifier.endsWith('?') || quantifier === '?');
const lazy = quantifiers.filter((quantifier) => quantifier.endsWith('?') && quantifier !== '?');

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

  pattern(): string {
    if (this.#draw(4) === 0) return this.#prefixed();
    return this.#draw(4) === 0
      ? this.#alternation(2)
      : this.#distinct(1, this.#one([greedy, greedy, ['', ...lazy]]));
  }

  text(): string {
    return Array.from({ length: this.#draw(9) }, () =>
      this.#one(['a', 'a', 'b', 'b', 'c', 'ü', ' ', '-', '\n']),
    ).join('');
  }

  /** Any pattern. PostgreSQL can follow the preferences of a quarter of them. */
  #alternation(depth: number): string {
    return Array.from({ length: this.#one([1, 1, 1, 2, 3]) }, () =>
      this.#draw(12) === 0 ? '' : this.#sequence(depth),
    ).join('|');
  }

  #sequence(depth: number): string {
    return Array.from({ length: 1 + this.#draw(3) }, () => this.#quantified(this.#atom(depth))).join('');
  }

  #atom(depth: number): string {
    const choice = this.#draw(depth > 0 ? 12 : 7);
    if (choice < 4) return this.#one(letters);
    if (choice < 6) return this.#one(['.', '[ab]', '[^a]', '\\w', 'ü']);
    if (choice === 6) return this.#one(['\\b', '\\B', '^', '$']);
    return this.#group(this.#alternation(depth - 1));
  }

  /** Optional prefixes before a repeated class, as in expressions for URLs. */
  #prefixed(): string {
    const part = (): string => this.#one(['a', 'b', 'c', '-', '[ab]', '[^a]', ' ']);
    const prefix = (): string =>
      `${this.#one(['(', '(?:'])}${part()}${this.#one(['', part(), `${part()}?`])}${part()})${this.#one(['?', '?', '*'])}`;
    const prefixes = Array.from({ length: 1 + this.#draw(2) }, prefix).join('');
    return `${prefixes}(${this.#one(['[^a]', '[ab]', '[^-]', '.', '[bc]'])}${this.#one(['+', '*', '{2,}'])})`;
  }

  /** A pattern whose branches, and mostly its items, start with different letters. PostgreSQL can follow most of them. */
  #distinct(depth: number, allowed: readonly string[]): string {
    const first = this.#draw(letters.length);
    const branches = this.#one([1, 1, 2, 3]);
    return Array.from({ length: branches }, (_branch, branch) =>
      Array.from({ length: 1 + this.#draw(3) }, (_item, item) => {
        const letter = letters[(first + branch + item) % letters.length] ?? '';
        const isStart = item === 0 && branches > 1;
        return this.#quantified(this.#startingWith(letter, depth, allowed), isStart ? [''] : allowed);
      }).join(''),
    ).join('|');
  }

  #startingWith(letter: string, depth: number, allowed: readonly string[]): string {
    const choice = this.#draw(depth > 0 ? 8 : 4);
    if (choice < 3) return letter;
    if (choice === 3) return `[${letter}${{ a: 'ü', b: ' ' }[letter] ?? '\\n'}]`;
    const rest = choice === 7 ? `(?:${this.#distinct(depth - 1, allowed)})` : this.#one(['', '-', '|-']);
    return this.#group(`${letter}${rest}`);
  }

  #group(body: string): string {
    return `${this.#one(['(', '(', '(?:'])}${body})`;
  }

  #quantified(atom: string, allowed = quantifiers): string {
    return isNotRepeated(atom) ? atom : `${atom}${this.#one(allowed)}`;
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
