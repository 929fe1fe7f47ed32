// The checks of checks.py by node's fetch, which is undici.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { subscribe } from "node:diagnostics_channel";
import { readFile } from "node:fs/promises";

const { SIDECAR, CONTROL, JOB, TABLE } = process.env;
const json = { "Content-Type": "application/json" };

let connections = 0;
const port = new URL(SIDECAR).port;
subscribe("undici:client:connected", ({ connectParams }) => (connections += connectParams.port === port));

const post = (path, body, headers = {}, more = {}) =>
  fetch(SIDECAR + path, { method: "POST", headers: { ...json, ...headers }, body, ...more });

async function control(what) {
  const answer = await fetch(`${CONTROL}/${what}`);
  const text = await answer.text();
  if (answer.status === 404) return null;
  assert.ok(answer.ok, `${what} did not come about`);
  return text ? JSON.parse(text) : {};
}

// parts is a body without a length; after them, last() may wait or throw.
const parts = (list, last = async () => {}) =>
  new ReadableStream({
    async pull(to) {
      if (list.length) return to.enqueue(new TextEncoder().encode(list.shift()));
      await last();
      to.close();
    },
  });

const checks = {
  async job() {
    const answer = await post("/v1/jobs", await readFile(JOB), { Accept: "text/csv" });
    assert.equal(answer.status, 200);
    assert.equal(await answer.text(), await readFile(TABLE, "utf8"));
  },

  async refused() {
    const answer = await post("/probe/echo", '{"project_id": 1', { "Probe-Id": "fetch-refused" });
    assert.equal(answer.status, 400);
    assert.equal(answer.headers.get("pilotfish-reason"), "malformed-job");
    await answer.text();
    assert.equal(await control("seen/fetch-refused"), null);
  },

  async keep_alive() {
    const before = connections;
    for (let n = 0; n < 20; n++) {
      const body = `{"project_id": ${n}}`;
      assert.equal(await (await post("/probe/echo", body)).text(), body);
    }
    assert.ok(connections - before <= 1, `${connections - before} connections`);
  },

  async chunked() {
    const list = ['{"project_id": 7, "pad": "', ...Array(48).fill("0123456789abcdef".repeat(4096)), '"}'];
    const whole = list.join("");
    const answer = await post("/probe/echo", parts(list), { "Probe-Id": "fetch-chunked" }, { duplex: "half" });
    assert.ok((await answer.text()) === whole, "the answer is not the body");
    assert.equal((await control("seen/fetch-chunked")).sha256, createHash("sha256").update(whole).digest("hex"));
  },

  async encoding() {
    const body = `{"project_id": 7, "pad": "${"x".repeat(5000)}"}`;
    for (const asked of ["gzip", "identity"]) {
      const answer = await post("/probe/echo", body, { "Accept-Encoding": asked, "Probe-Id": `fetch-${asked}` });
      assert.equal(await answer.text(), body);
      assert.equal(answer.headers.get("content-encoding") ?? "identity", asked);
      assert.deepEqual((await control(`seen/fetch-${asked}`)).accept_encoding, [asked]);
    }
  },

  async streaming() {
    const answer = await post("/probe/stream", '{"project_id": 7}', { "Probe-Id": "fetch-streaming" });
    let n = 0;
    for await (const piece of answer.body) {
      assert.equal(new TextDecoder().decode(piece), `piece ${n++}\n`);
      await control("release/fetch-streaming");
    }
    assert.equal(n, 5);
    await control("idle");
  },

  async leaving_the_answer() {
    const leave = new AbortController();
    const answer = await post("/probe/stream", '{"project_id": 7}', { "Probe-Id": "fetch-leaving" }, { signal: leave.signal });
    const piece = await answer.body.getReader().read();
    assert.equal(new TextDecoder().decode(piece.value), "piece 0\n");
    leave.abort();
    await control("cancelled/fetch-leaving");
    await control("idle");
  },

  async leaving_the_upload() {
    const last = async () => {
      await control("uploading");
      throw new Error("enough");
    };
    const body = parts(['{"project_id": 7, "pad": "' + "x".repeat(200_000)], last);
    await assert.rejects(post("/probe/echo", body, { "Probe-Id": "fetch-upload" }, { duplex: "half" }));
    await control("idle");
    assert.equal(await control("seen/fetch-upload"), null);
  },
};

for (const [name, check] of [...Object.entries(checks), ["job", checks.job]]) {
  await check();
  console.log(`fetch ${process.version}: ${name}`);
}
