"""Cases for torch-job.test: run as `job_cases.py FOLDER`."""

import os
import sys
import unittest

import torch
from torch import nn

import autohet
import autohet.torch

FOLDER = sys.argv.pop()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(13, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embed(input_ids)))


class JobCases(unittest.TestCase):
    def test_trains_as_pytorch_does_and_loads_back(self) -> None:
        torch.manual_seed(0)
        model = Model()
        ids, labels = torch.randint(13, (4, 6)), torch.randint(13, (4, 6))
        job = autohet.torch.compile(model, ids[:2], os.path.join(FOLDER, "job"), global_batch=4, optimizer="sgd")
        losses = job.train(3, inputs=ids, labels=labels, lr=0.1, log_every=0)
        trained = Model()
        job.load_into(trained)

        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for loss in losses:
            optimizer.zero_grad()
            expected = nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
            expected.backward()
            optimizer.step()
            self.assertAlmostEqual(loss, expected.item(), places=5)
        for name, parameter in model.named_parameters():
            self.assertTrue(torch.allclose(parameter, trained.get_parameter(name), atol=1e-5), name)
        self.assertIs(trained.head.weight, trained.embed.weight)

    def test_frozen_parameters_stay(self) -> None:
        torch.manual_seed(1)
        model = Model()
        model.embed.requires_grad_(False)
        ids, labels = torch.randint(13, (4, 6)), torch.randint(13, (4, 6))
        job = autohet.torch.compile(model, ids[:2], os.path.join(FOLDER, "frozen"), global_batch=4)
        job.train(2, inputs=ids, labels=labels, lr=0.1, log_every=0)
        before = {name: parameter.clone() for name, parameter in model.named_parameters()}
        job.load_into(model)
        for name, parameter in model.named_parameters():
            self.assertEqual(torch.equal(parameter, before[name]), name == "embed.weight", name)

    def test_what_a_tool_says_is_the_error(self) -> None:
        with self.assertRaisesRegex(autohet.torch.ToolError, "cluster.yaml"):
            autohet.torch.compile(
                Model(), torch.randint(13, (2, 6)), os.path.join(FOLDER, "no"), global_batch=4, cluster="no/cluster.yaml"
            )


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
