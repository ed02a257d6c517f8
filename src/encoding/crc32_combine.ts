/** The CRC-32 polynomial in reversed bit order. */
const polynomial = 0xedb8_8320;

/**
 * The product of two polynomials modulo the CRC-32 polynomial, in reversed bit order: the highest bit is the
 * coefficient of 1.
 */
function multiply(left: number, right: number): number {
  let product = 0;
  let factor = right;
  for (let bit = 0x8000_0000; bit !== 0; bit >>>= 1) {
    if ((left & bit) !== 0) product ^= factor;
    factor = (factor & 1) === 1 ? (factor >>> 1) ^ polynomial : factor >>> 1;
  }
  return product >>> 0;
}

/** x^(2^n) for n from 0 to 31, after which the powers repeat. */
const powers: number[] = [0x4000_0000];
while (powers.length < 32) powers.push(multiply(powers.at(-1) ?? 0, powers.at(-1) ?? 0));

/**
 * The CRC-32 of two concatenated byte strings, from their CRC-32s and the length of the second in bytes. It allows
 * compressing blocks in several threads and joining them to one gzip member.
 */
export function combineCrc32(first: number, second: number, secondLength: number): number {
  // Appending n bytes multiplies the first remainder by x^(8n). The bits of n select the powers, from x^(2^3).
  let shift = 0x8000_0000;
  let rest = secondLength;
  for (let power = 3; rest > 0; power += 1) {
    if (rest % 2 === 1) shift = multiply(powers[power % 32] ?? 0, shift);
    rest = Math.floor(rest / 2);
  }
  return (multiply(shift, first) ^ second) >>> 0;
}
